// @ts-check
// node holder.mjs STORE LOCK: holds the lock until its parent says that it may let go, or kills it.

import { open } from 'signalbox';

const [url = '', name = ''] = process.argv.slice(2);
const box = await open(url, { sessionTtlMs: 4_000, maintains: false });
const hold = await box.lock(name).acquire({ holder: 'holder' });
process.send?.('holds');
process.once('message', () => {
  void hold
    .release()
    .then(() => box.close())
    .then(() => process.disconnect?.());
});
