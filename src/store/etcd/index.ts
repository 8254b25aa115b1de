import type { EtcdOptions } from './open.ts';
import type { EtcdStore } from './store.ts';

export { type Endpoint, type EtcdOptions } from './open.ts';
export type { EtcdStore } from './store.ts';
export type { TlsOptions } from './transport.ts';

/** Connects when it is first asked for something. The engine is loaded here, so that others do not pay for it. */
export async function openEtcd(options: EtcdOptions): Promise<EtcdStore> {
  const engine = await import('./open.ts');
  return engine.openEtcd(options);
}
