// @ts-check
// node waiters.mjs URL COUNT: so many sessions want one lock. Each keeps it if COUNT is 1, and otherwise gives it back.
import { open } from 'signalbox';

const [url = '', count = '1'] = process.argv.slice(2);
/** @param {object} message */
const say = (message) => process.send?.(message);

for (let i = 0; i < Number(count); i++) {
  const box = await open(url);
  box
    .lock('wanted')
    .acquire({ onWaiting: () => say({ kind: 'waiting' }) })
    .then(
      async (hold) => {
        say({ kind: 'let in' });
        if (count !== '1') await hold.release();
      },
      (error) => say({ kind: 'lost', why: String(error) }),
    );
}
process.on('disconnect', () => process.exit());
