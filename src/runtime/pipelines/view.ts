/** A pipeline as users see it. */
import type { PipelineRecord } from '../../core/index.ts';
import type { RunSpec } from './run-spec.ts';
import type { PhaseLog } from './log.ts';

/** A pipeline, as `show` gives it. */
export interface PipelineView extends PipelineRecord {
  /** Whether a process drives it now. A pipeline that is neither driven nor over waits for `resume`. */
  readonly isDriven: boolean;
  /** The directory where its commands run. */
  readonly cwd: string;
  /** The machine where it was started. */
  readonly host: string;
}

export function viewOf(record: PipelineRecord, book: RunSpec | undefined, isDriven: boolean): PipelineView {
  return { ...record, isDriven, cwd: book?.cwd ?? '', host: book?.host ?? '' };
}

export type { PhaseLog };
