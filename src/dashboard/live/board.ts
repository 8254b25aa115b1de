/**
 * Reads the whole board piece by piece, so that the browser can draw a frame between two pieces. Parsing ten thousand
 * locks in one go would block the page for longer than a frame.
 */
import { boardIn, object, resourcesIn, timeIn } from '../model/read.ts';
import type { Resource, State } from '../model/types.ts';
import { lines } from './api.ts';

export interface ReadBoard {
  readonly board: State;
  /** Events from this revision on are not in the board, or not all of them. */
  readonly since: number;
  /** By the server's clock. */
  readonly at: number;
}

/** How long a piece may take; a frame has 16 ms. */
const PIECE_MS = 5;

export async function readBoard(signal: AbortSignal): Promise<ReadBoard> {
  const resources = new Map<string, Resource>();
  let first: (ReadBoard & { readonly readAt: number }) | undefined;
  let isWhole = false;
  let begun = performance.now();
  for await (const some of lines('/v1/board/lines', signal)) {
    for (const line of some) {
      const json = object(JSON.parse(line));
      if (first === undefined) {
        const at = timeIn(json['at']);
        first = { board: boardIn(json), since: Number(json['since']), at: at ?? Date.now(), readAt: at ?? 0 };
      }
      for (const one of resourcesIn(json, first.board.revision, first.readAt)) resources.set(one.resource, one);
      isWhole = json['isWhole'] === true;
      if (performance.now() - begun < PIECE_MS) continue;
      await othersFirst();
      begun = performance.now();
    }
  }
  if (first === undefined || !isWhole) throw new Error('the server broke off its answer');
  const { board, since, at } = first;
  return { board: { ...board, resources }, since, at };
}

/** A page that nobody sees draws no frames, and its timers are slow. */
function othersFirst(): Promise<void> | undefined {
  return document.hidden ? undefined : new Promise((resolve) => setTimeout(resolve));
}
