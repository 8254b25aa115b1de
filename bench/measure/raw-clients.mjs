/**
 * One transaction on one key, through each client for etcd that Node has: a comparison that holds, and a put. Each is
 * `transact(key)`, for keys that exist.
 */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

export const rawClients = {
  async signalbox({ url }) {
    const { openEtcdUrl, Value } = await import('signalbox/store');
    const store = await openEtcdUrl(url);
    return {
      transact: (key) =>
        store.transaction({
          compare: [{ key, target: 'mod', is: '>', than: 0 }],
          success: [{ do: 'put', key, value: Value.text('v') }],
          failure: [],
        }),
      prepare: (key) =>
        store.transaction({
          compare: [],
          success: [{ do: 'put', key, value: Value.text('v') }],
          failure: [],
        }),
      close: () => store.close(),
    };
  },

  async etcd3({ endpoint }) {
    const { Etcd3 } = await import('etcd3');
    const client = new Etcd3({ hosts: `http://${endpoint}` });
    return {
      transact: (key) => client.if(key, 'Mod', '>', 0).then(client.put(key).value('v')).commit(),
      prepare: (key) => client.put(key).value('v'),
      close: async () => client.close(),
    };
  },

  /** As its documentation has it: messages by protobufjs, from etcd's own definitions. */
  async '@grpc/grpc-js'({ endpoint }) {
    const [grpc, { default: protobuf }] = await Promise.all([import('@grpc/grpc-js'), import('protobufjs')]);
    const definitions = new protobuf.Root();
    const folder = createRequire(import.meta.url)
      .resolve('etcd3/proto/rpc.proto')
      .replace('rpc.proto', '');
    for (const file of ['auth.proto', 'kv.proto', 'rpc.proto']) {
      protobuf.parse(readFileSync(folder + file, 'utf8'), definitions, { keepCase: true });
    }
    const request = definitions.lookupType('etcdserverpb.TxnRequest');
    const response = definitions.lookupType('etcdserverpb.TxnResponse');
    const client = new grpc.Client(endpoint, grpc.credentials.createInsecure());
    const call = (message) =>
      new Promise((resolve, reject) => {
        client.makeUnaryRequest(
          '/etcdserverpb.KV/Txn',
          (value) => Buffer.from(request.encode(value).finish()),
          (bytes) => response.decode(bytes),
          message,
          (error, value) => (error ? reject(error) : resolve(value)),
        );
      });
    const put = (key) => [{ request_put: { key: Buffer.from(key), value: Buffer.from('v') } }];
    return {
      // GREATER than 0, of MOD.
      transact: (key) =>
        call({ compare: [{ result: 1, target: 2, key: Buffer.from(key), mod_revision: 0 }], success: put(key) }),
      prepare: (key) => call({ compare: [], success: put(key) }),
      close: async () => client.close(),
    };
  },
};
