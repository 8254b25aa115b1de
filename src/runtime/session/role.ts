/** Roles that one process of a store has at a time: each is an anchor on the lease of its process. */
import { anchorKey, decode, encode } from '../layout.ts';
import type { Runtime } from '../runtime.ts';
import { readEach } from '../stored.ts';

/** Takes the role if no process has it. Answers whether this process has it now. */
export async function takeRole(runtime: Runtime, role: string): Promise<boolean> {
  const { session, store, stopped } = runtime;
  if (session === undefined) return false;
  const key = anchorKey(role);
  const { results } = await store.transaction(
    {
      compare: [
        { key, target: 'version', is: '=', than: 0 },
        { key: anchorKey(session.id), target: 'version', is: '>', than: 0 },
      ],
      success: [{ do: 'put', key, value: encode(session.id), lease: session.leaseId }],
      failure: [{ do: 'read', key }],
    },
    stopped,
  );
  const [read] = results;
  // A key that cannot be read names nobody, and must not keep every process from the role.
  const [holder = session.id] = read?.do === 'read' ? readEach(read.pairs, (pair) => decode<unknown>(pair)) : [];
  return holder === session.id;
}
