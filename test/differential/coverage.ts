/** What the sequences brought about. Engines that are never asked anything hard agree on everything. */
import type { Operation } from 'signalbox/store';
import type { Answer } from './player.ts';
import type { Delivered } from './recording.ts';
import type { Command } from './sequence.ts';

const WANTED = [
  'transaction: succeeded',
  'transaction: failed',
  'transaction: invalid',
  'transaction: not-found',
  'comparison of version over a range',
  'comparison of create over a range',
  'comparison of mod over a range',
  'comparison of value over a range',
  'comparison of lease over a range',
  'put again, keeping the lease',
  'put on a lease',
  'delete of several',
  'read by create, several',
  'read by create, with more to come',
  'read with more to come',
  'read of a count',
  'nested: succeeded',
  'nested: failed',
  'keep-alive: kept',
  'keep-alive: gone',
  'lease-state: with keys',
  'lease-state: gone',
  'revoke',
  'compact: done',
  'compact: compacted',
  'compact: invalid',
  'watch: invalid',
  'watch: delivered a put',
  'watch: delivered a deletion',
  'watch: delivered several changes at once',
  'watch: compacted',
] as const;

type Label = (typeof WANTED)[number];

interface ResultShape {
  readonly do: string;
  readonly succeeded?: boolean;
  readonly deleted?: number;
  readonly pairs?: readonly unknown[];
  readonly more?: boolean;
  readonly count?: number;
  readonly results?: readonly ResultShape[];
}

export class Coverage {
  readonly #seen = new Set<Label>();

  missing(): string[] {
    return WANTED.filter((label) => !this.#seen.has(label));
  }

  readonly note = (command: Command, answer: Answer): void => {
    const failure = (answer as { failure?: string } | null)?.failure;
    switch (command.do) {
      case 'transaction': {
        if (failure === 'invalid' || failure === 'not-found') this.#see(`transaction: ${failure}`);
        if (failure !== undefined) return;
        const { succeeded, results } = answer as { succeeded: boolean; results: readonly ResultShape[] };
        const { compare, success, failure: otherwise } = command.transaction;
        this.#see(succeeded ? 'transaction: succeeded' : 'transaction: failed');
        for (const { end, target } of compare) if (end !== undefined) this.#see(`comparison of ${target} over a range`);
        this.#noteResults(succeeded ? success : otherwise, results);
        return;
      }
      case 'keep-alive':
        return this.#see(answer === null ? 'keep-alive: gone' : 'keep-alive: kept');
      case 'lease-state':
        if (answer === null) return this.#see('lease-state: gone');
        return (answer as { keys: unknown[] }).keys.length > 0 ? this.#see('lease-state: with keys') : undefined;
      case 'revoke':
        return this.#see('revoke');
      case 'compact':
        return this.#see(`compact: ${(failure as 'compacted' | 'invalid' | undefined) ?? 'done'}`);
      case 'watch':
        return failure === 'invalid' ? this.#see('watch: invalid') : undefined;
      case 'settle':
        return this.#noteDelivered(answer as readonly { delivered: readonly Delivered[]; over?: string }[]);
      case 'grant':
    }
  };

  #noteResults(operations: readonly Operation[], results: readonly ResultShape[]): void {
    operations.forEach((operation, i) => {
      const result = results[i] as ResultShape;
      switch (operation.do) {
        case 'put':
          if (operation.lease === 'keep') this.#see('put again, keeping the lease');
          else if (operation.lease !== undefined) this.#see('put on a lease');
          return;
        case 'delete':
          return (result.deleted ?? 0) > 1 ? this.#see('delete of several') : undefined;
        case 'read':
          if (result.more === true) this.#see('read with more to come');
          if (operation.order === 'create' && (result.pairs?.length ?? 0) > 1) this.#see('read by create, several');
          if (operation.order === 'create' && result.more === true) this.#see('read by create, with more to come');
          if (operation.countOnly === true && (result.count ?? 0) > 0) this.#see('read of a count');
          return;
        case 'transaction':
          this.#see(result.succeeded === true ? 'nested: succeeded' : 'nested: failed');
          this.#noteResults(result.succeeded === true ? operation.success : operation.failure, result.results ?? []);
      }
    });
  }

  #noteDelivered(watches: readonly { delivered: readonly Delivered[]; over?: string }[]): void {
    for (const { delivered, over } of watches) {
      if (over === 'compacted') this.#see('watch: compacted');
      for (const { changes } of delivered) {
        if (changes.length > 1) this.#see('watch: delivered several changes at once');
        for (const change of changes as readonly { kind: 'put' | 'delete' }[]) {
          this.#see(change.kind === 'put' ? 'watch: delivered a put' : 'watch: delivered a deletion');
        }
      }
    }
  }

  #see(label: Label): void {
    this.#seen.add(label);
  }
}
