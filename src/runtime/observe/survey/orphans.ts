/** Finds what still runs under a hold whose process is gone. */
import { remainsOf } from '../../../host/index.ts';
import type { KeyValue } from '../../../store/index.ts';
import { noteIn } from '../../child-note.ts';

/** `hold`: its id. A process on another machine cannot be seen from here. */
export function orphansOf(hold: string, notes: readonly KeyValue[]): readonly number[] {
  const children = notes.flatMap((pair) => noteIn(pair) ?? []).filter((note) => note.hold === hold);
  const pids = children.flatMap(({ child }) => {
    const remains = remainsOf(child);
    return remains.kind === 'some' ? remains.pids : [];
  });
  return [...new Set(pids)].sort((one, other) => one - other);
}
