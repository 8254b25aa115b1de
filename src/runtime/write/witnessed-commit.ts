/**
 * Sends a write together with its entries in the witness, for everything that is not a lock or a semaphore. The end of each
 * chain is in a key of its own, which the write compares and puts:
 *
 *     if    … and mod(witness.head/task/7) = 41
 *     then  … and put witness.head/task/7 { seq: 3, hash }, put witness/task/7/000000000003 { … }
 *     else  … and read witness.head/task/7
 *
 * This process remembers the ends of chains that it has seen. If another process has written since, the failed write reads
 * the new end, and the same write is sent once more on top of it; only its own comparisons decide whether it lands then.
 */
import type { Json } from '../../core/index.ts';
import { enteredText, type WitnessedCommand, type WitnessEntry } from '../../core/witness/index.ts';
import type { Compare, Operation, Revision, Transaction, TransactionResult } from '../../store/index.ts';
import { type ChainEnd, chainPath, encode, type Head, headKey } from '../layout.ts';
import { chainEnd, keepHead, type Witness } from './witness.ts';
import { waitedSince } from './witnessed.ts';

/** What one write did to one resource, for its entry. */
export interface Deed {
  /** `task/7`, `pipeline/release-7`, … */
  readonly resource: string;
  /** Who asked. */
  readonly actor: string;
  readonly command: string;
  readonly outcome: string;
  readonly events?: readonly string[];
  /** The trace that it belongs to, if not that of the process. */
  readonly trace?: string | undefined;
  /** What asked, if it is neither the primitive nor what this process was opened as. */
  readonly component?: string | undefined;
  readonly detail?: { readonly [name: string]: Json };
  /** When it was asked for, by the wall clock, if it may wait. */
  readonly askedAt?: number | undefined;
  /** The document that this write puts and that carries the end of the chain along, so that its readers know it. */
  readonly carrier?: string;
  /** The end of the chain as the carrier had it, which was put at `keyMod`. */
  readonly carried?: ChainEnd | undefined;
  /** From now on something exists under this name that a lease or another program may end, and no write would enter that. */
  readonly isLeased?: boolean;
  /** Takes the entry, once it is in the store. */
  readonly entered?: (entry: WitnessEntry) => void;
}

interface Host {
  readonly witness: Witness;
  readonly revision: Revision;
  readonly clock: { now(): number };
  commit(transaction: Transaction, done: (result: TransactionResult) => void, failed: (error: unknown) => void): void;
}

/** Sends a write with its entries, if the witness is on. */
export function commitWitnessed(
  host: Host,
  transaction: Transaction,
  deeds: readonly Deed[],
  done: (result: TransactionResult) => void,
  failed: (error: unknown) => void,
): void {
  if (deeds.length === 0) return host.commit(transaction, done, failed);
  host.witness.know(() => {
    if (host.witness.isOn) return attempt(host, transaction, deeds, done, failed);
    host.commit(
      host.witness.unlessSwitchedOn(transaction),
      (result) => {
        if (host.witness.switchedOn(result)) commitWitnessed(host, transaction, deeds, done, failed);
        else done(result);
      },
      failed,
    );
  }, failed);
}

function attempt(
  host: Host,
  transaction: Transaction,
  deeds: readonly Deed[],
  done: (result: TransactionResult) => void,
  failed: (error: unknown) => void,
): void {
  const { witness } = host;
  const time = host.clock.now();
  const compare: Compare[] = [...transaction.compare];
  const success: Operation[] = [...transaction.success];
  const failure: Operation[] = [...transaction.failure];
  const chains = deeds.map((deed) => {
    const path = chainPath(deed.resource);
    const end = witness.ends.newest(path, deed.carried);
    const link = witness.link(deed.resource, end, time, host.revision, [commandOf(deed, witness, time)], path);
    compare.push(...link.compare);
    if (deed.carrier !== undefined) carry(success, deed.carrier, link.head);
    success.push(link.put, keepHead(path, link.head, deed.isLeased));
    failure.push({ do: 'read', key: headKey(path) });
    return { path, end, head: link.head, put: link.put };
  });
  const answered = (result: TransactionResult): void => {
    const { results, revision } = result;
    if (result.succeeded) {
      for (const [place, { path, head, put }] of chains.entries()) {
        witness.ends.saw(path, { ...head, keyMod: revision }, revision);
        deeds[place]?.entered?.(put.value.json as WitnessEntry);
      }
      return done({ ...result, results: results.slice(0, transaction.success.length) });
    }
    let isNew = false;
    for (const [place, { path, end }] of chains.entries()) {
      const read = results[transaction.failure.length + place];
      const found = chainEnd(undefined, read?.do === 'read' ? read.pairs[0] : undefined);
      if (found.keyMod === end.keyMod) continue;
      witness.ends.saw(path, found, revision, end);
      isNew = true;
    }
    // The end of a chain was another one, and the rest of the write may be right: tries again. Leaves out what a document
    // carried along: any client may have put that document again.
    if (isNew) return attempt(host, transaction, deeds.map(withoutCarried), done, failed);
    done({ ...result, results: results.slice(0, transaction.failure.length) });
  };
  host.commit(
    { compare, success, failure },
    (result) => {
      try {
        answered(result);
      } catch (error) {
        // The head of a chain that another program wrote cannot be read.
        failed(error);
      }
    },
    failed,
  );
}

function withoutCarried({ carried: _carried, ...deed }: Deed): Deed {
  return deed;
}

function carry(operations: Operation[], carrier: string, head: Head): void {
  const place = operations.findIndex((operation) => operation.do === 'put' && operation.key === carrier);
  const put = operations[place];
  if (put?.do !== 'put') return;
  operations[place] = { ...put, value: encode({ ...(put.value.json as object), head }) };
}

function commandOf(deed: Deed, witness: Witness, time: number): WitnessedCommand {
  const { resource, actor, command, outcome, events = [], detail, askedAt } = deed;
  const { trace = witness.trace, component = witness.component ?? resource.slice(0, resource.indexOf('/')) } = deed;
  return {
    actor: enteredText(actor),
    component,
    ...(trace !== undefined && { trace: enteredText(trace) }),
    command,
    outcome,
    events,
    ...(askedAt !== undefined && waitedSince(askedAt, time)),
    ...(detail !== undefined && Object.keys(detail).length > 0 && { detail }),
  };
}
