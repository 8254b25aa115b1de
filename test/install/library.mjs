// A program of a user, in plain JavaScript: on a file where there is an SQLite, and in memory.
import { open } from 'signalbox';

for (const url of [process.env.SIGNALBOX_URL, 'memory:']) {
  const box = await open(url);
  await box.lock('main').run(({ token }) => console.log(`${url.slice(0, 6)} let in with ${typeof token} token`));
  await box.close();
}
