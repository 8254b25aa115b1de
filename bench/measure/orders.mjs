/** The other side of `Child`: takes orders from stdin, one after the other, and answers each on stdout. */
import { createInterface } from 'node:readline';

export async function takeOrders(answer, clearUp) {
  say({ kind: 'ready' });
  for await (const line of createInterface({ input: process.stdin })) say(await answer(JSON.parse(line)));
  await clearUp();
}

function say(what) {
  process.stdout.write(`${JSON.stringify(what)}\n`);
}
