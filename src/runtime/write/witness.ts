/**
 * The witness of this process: adds to every write the entry that tells of it, in the same transaction.
 *
 *     put r/lock/main  { record, events, head: { seq: 8, hash } }     the record names the last entry of its chain, …
 *     put witness/lock/main/000000000008  { previous, commands, … }   … so each writer of the record knows the entry before
 *
 * A write compares the document that names the last entry, so two writes cannot both follow the same entry: no chain forks. A
 * resource without a document has the last entry in `witness.head/…`, which is compared in its place.
 *
 * Whether the witness is on is a property of the store: the first process that asks for it decides, while no other is at work,
 * and all others follow. So no process leaves a gap because it was started with another setting.
 */
import { NONE, type Origin, isCount, isRecord } from '../../core/index.ts';
import { nextEntry, type WitnessedCommand } from '../../core/witness/index.ts';
import { Failure } from '../../failure.ts';
import { sha256 } from '../../host/index.ts';
import {
  type Compare,
  type KeyValue,
  type Operation,
  Operations,
  pairIn,
  prefixed,
  type Put,
  type Revision,
  type Transaction,
  type TransactionResult,
  Value,
} from '../../store/index.ts';
import {
  ANCHORS,
  type ChainEnd,
  chainPath,
  decode,
  encode,
  entryKey,
  type Head,
  headKey,
  HORIZON,
  NO_CHAIN,
  WITNESS_SETTING,
} from '../layout.ts';
import { DelegatedCommand, type PendingCommand } from './pending-command.ts';

/** How an entry is added to a transaction. */
export interface Link {
  /** The new end, for the document that the write puts. */
  readonly head: Head;
  readonly put: Put;
  readonly compare: readonly Compare[];
}

export interface WitnessSettings {
  /** Whether the witness of a new store is on. */
  readonly isOn: boolean;
  /** The caller has said so: a store with the other setting is refused. */
  readonly isDemanded: boolean;
  readonly component?: string | undefined;
  readonly trace?: string | undefined;
}

interface Host {
  readonly clock: { now(): number };
  /** While this process has a session, nobody can switch the witness on. */
  readonly session: object | undefined;
  commit(transaction: Transaction, done: (result: TransactionResult) => void, failed: (error: unknown) => void): void;
}

export class Witness {
  /** The ends of chains that are in no document, as this process knows them. */
  readonly ends = new ChainEnds();
  /** False until the store was asked whether the witness is on. */
  isKnown = false;
  isOn = false;
  /** The mod revision of the setting, as it was read last. */
  #settingMod: Revision = 0;
  readonly #settings: WitnessSettings;
  readonly #host: Host;

  constructor(settings: WitnessSettings, host: Host) {
    this.#settings = settings;
    this.#host = host;
  }

  get component(): string | undefined {
    return this.#settings.component;
  }

  get trace(): string | undefined {
    return this.#settings.trace;
  }

  // Whether it is on

  /** Adds to a transaction what decides or finds out whether the witness is on. `told` takes its result. */
  ask(operations: Operations): void {
    const { isOn, isDemanded } = this.#settings;
    // It is off by default, and nothing is written unless a process asks for it.
    if (isDemanded) {
      operations.nest({
        // Processes that are at work already have asked, and go on as if it were off.
        compare: [
          { key: WITNESS_SETTING, target: 'version', is: '=', than: 0 },
          { ...prefixed(ANCHORS), target: 'version', is: '=', than: 0 },
        ],
        success: [{ do: 'put', key: WITNESS_SETTING, value: encode({ on: isOn, since: this.#host.clock.now() }) }],
        failure: [],
      });
    }
    operations.read({ key: WITNESS_SETTING });
  }

  /** Throws if the store has another setting than the one that was demanded. */
  told({ results }: Pick<TransactionResult, 'results'>): void {
    const { isOn, isDemanded } = this.#settings;
    const found = pairIn(results, WITNESS_SETTING);
    const stored = found === undefined ? false : isStoredOn(found);
    if (isDemanded && stored !== isOn) {
      const [is, wanted] = stored ? ['on', 'off'] : ['off', 'on'];
      throw new Failure(
        'invalid',
        `the witness of this store is ${is}, and it was opened with witness ${wanted}. All processes on a store have the ` +
          'same setting, or the record would have gaps: leave the setting out, or use another store' +
          (wanted === 'on' && found === undefined ? ', or try again when no other process is at work on this one' : ''),
      );
    }
    this.isKnown = true;
    this.isOn = stored;
    this.#settingMod = found?.modRevision ?? 0;
  }

  /** Asks the store, unless that is known. */
  know(done: () => void, failed: (error: unknown) => void): void {
    if (this.isKnown) return done();
    const operations = new Operations();
    this.ask(operations);
    this.#host.commit(
      operations.always(),
      (result) => {
        try {
          this.told(result);
        } catch (error) {
          return failed(error);
        }
        done();
      },
      failed,
    );
  }

  known(): Promise<void> {
    return this.isKnown ? Promise.resolve() : new Promise((resolve, reject) => this.know(resolve, reject));
  }

  /**
   * The transaction of a process that takes the witness to be off. Without a session it may be wrong: the write then compares
   * that nobody has switched the witness on meanwhile, or the record would lack the write. `switchedOn` reads the answer.
   */
  unlessSwitchedOn(transaction: Transaction): Transaction {
    if (this.isOn || this.#host.session !== undefined) return transaction;
    const { compare, success, failure } = transaction;
    return {
      compare: [...compare, { key: WITNESS_SETTING, target: 'mod', is: '=', than: this.#settingMod }],
      success,
      failure: [...failure, { do: 'read', key: WITNESS_SETTING }],
    };
  }

  /** Whether a write that took the witness to be off has failed, and shows that the witness is on by now. */
  switchedOn({ succeeded, results }: TransactionResult): boolean {
    if (succeeded || this.isOn) return false;
    const found = pairIn(results, WITNESS_SETTING);
    if (found === undefined) return false;
    this.#settingMod = found.modRevision;
    this.isOn = isStoredOn(found);
    return true;
  }

  // Entries

  /**
   * Says in the command who asked, and when: it may wait in the queue, or another process may write it. Also says that it is
   * sensitive, even if the witness is off: the process that serves it may have switched the witness on.
   */
  stamp(pending: PendingCommand): void {
    const { command } = pending;
    if (command.origin !== undefined || pending instanceof DelegatedCommand) return;
    pending.command = { ...command, origin: this.origin(command.trace, command.sensitive) };
  }

  /** Who asks in this process, now. */
  origin(trace = this.trace, sensitive?: true): Origin {
    const { component } = this;
    return {
      at: this.#host.clock.now(),
      ...(component !== undefined && { component }),
      ...(trace !== undefined && { trace }),
      ...(sensitive && { sensitive }),
    };
  }

  /** The entry of a write, to be added to its transaction. `end`: what the write follows. */
  link(
    resource: string,
    end: ChainEnd,
    time: number,
    revision: Revision,
    commands: readonly WitnessedCommand[],
    path = chainPath(resource),
  ): Link {
    const { seq, hash } = end;
    const { text, head } = nextEntry({ resource, seq, hash }, { revision, time, commands }, sha256);
    return {
      head: { seq: head.seq, hash: head.hash },
      put: { do: 'put', key: entryKey(path, head.seq), value: Value.text(text) },
      compare: asItIs(end, path),
    };
  }
}

function asItIs({ keyMod, asOf }: ChainEnd, path: string): readonly Compare[] {
  if (keyMod === undefined) return NONE;
  if (asOf !== undefined) return [{ key: HORIZON, target: 'mod', is: '<', than: asOf + 1 }];
  return [{ key: headKey(path), target: 'mod', is: '=', than: keyMod }];
}

/** The end of a chain as it was read: from the document that names it, or from its own key. */
export function chainEnd(document: KeyValue | undefined, own: KeyValue | undefined): ChainEnd {
  const inDocument = document === undefined ? undefined : headIn(document);
  if (inDocument !== undefined) return { ...inDocument, keyMod: undefined };
  const stored = own === undefined ? NO_CHAIN : headIn(own, true);
  // A chain that began again would overwrite its first entry.
  if (stored === undefined) throw new Failure('corrupt', `${own?.key}: it does not name the last entry of a chain`);
  // While the document is there, nobody writes the key.
  return { seq: stored.seq, hash: stored.hash, keyMod: document === undefined ? (own?.modRevision ?? 0) : undefined };
}

/** The last entry that a document names; undefined if it names none. */
export function headIn(pair: KeyValue, isBare = false): Head | undefined {
  const document = decode<unknown>(pair);
  const head = isBare ? document : isRecord(document) ? document['head'] : undefined;
  if (!isRecord(head) || !isCount(head['seq']) || typeof head['hash'] !== 'string') return undefined;
  return head as unknown as Head;
}

/** Keeps the end of a chain in its own key. `isLeased`: its resource may go without a command, and nobody enters that. */
export function keepHead(path: string, { seq, hash }: Head, isLeased = false): Operation {
  return { do: 'put', key: headKey(path), value: encode(isLeased ? { seq, hash, isLeased } : { seq, hash }) };
}

function isStoredOn(pair: KeyValue): boolean {
  const document = decode<unknown>(pair);
  return isRecord(document) && document['on'] === true;
}

/** How many ends of chains are remembered: tasks that are published and forgotten come and go. */
const REMEMBERED = 10_000;

interface Seen {
  readonly end: ChainEnd;
  /** A revision at which this was the end. */
  readonly at: Revision;
}

/** The ends of chains that this process has seen last. */
export class ChainEnds {
  readonly #seen = new Map<string, Seen>();

  /** The newest that is known: what this process has seen, or what it was just told. */
  newest(path: string, told = NO_CHAIN): ChainEnd {
    const seen = this.#seen.get(path);
    return seen === undefined || (told.keyMod ?? 0) > seen.at ? told : seen.end;
  }

  /**
   * Takes up an end, unless a newer one is known: two writes of one process may be answered in either order. `disproved`: the
   * end that this one shows to be wrong. It is not kept, whatever its revision: a store that was restored counts from an older one.
   */
  saw(path: string, end: ChainEnd, at: Revision, disproved?: ChainEnd): void {
    const before = this.#seen.get(path);
    if (before !== undefined && before.at > at && before.end !== disproved) return;
    this.#seen.delete(path);
    this.#seen.set(path, { end, at });
    if (this.#seen.size > REMEMBERED) this.#seen.delete(this.#seen.keys().next().value as string);
  }
}
