// node transactions.mjs DIRECTORY: prints how many transactions a second the store in this directory does.
import { openEmbedded, Value } from 'signalbox/store';

const COUNT = 4000;
const store = await openEmbedded(process.argv[2]);
const key = 'counter';
let { revision } = await store.health();

async function swap() {
  const compare = [{ key, target: 'mod', is: '=', than: revision }];
  const success = [{ do: 'put', key, value: Value.text(String(revision)) }];
  const result = await store.transaction({ compare, success, failure: [] });
  if (!result.succeeded) throw new Error('nobody else writes here');
  ({ revision } = result);
}

async function read() {
  await store.transaction({ compare: [], success: [{ do: 'read', key }], failure: [] });
}

async function perSecond(work) {
  const begun = performance.now();
  for (let i = 0; i < COUNT; i++) await work();
  return COUNT / ((performance.now() - begun) / 1000);
}

const put = { do: 'put', key, value: Value.text('') };
({ revision } = await store.transaction({ compare: [], success: [put], failure: [] }));
// Until it is compiled.
await perSecond(swap);
process.stdout.write(JSON.stringify({ 'compare and swap': await perSecond(swap), reads: await perSecond(read) }));
await store.close();
