export { waitsForItsTurn } from './own-turn.ts';
export { LARGEST_OUTPUTS_BYTES, outputNameProblem, parseOutputs, type ParsedOutputs } from './outputs.ts';
export { parseRunbook, type ParsedRunbook } from './parse.ts';
export { parseGuard, type ParsedGuard } from './parse-guard.ts';
export { type Choice, CHOICES, openQuestion, type VoidAnswer, whyVoid } from './question.ts';
export {
  type DriverCommand,
  type Effect,
  effectOf,
  type PhaseResult,
  type PipelineCommand,
  type PipelineOutcome,
  type PipelineTransition,
} from './command.ts';
export { pipelineTransition } from './pipeline.ts';
export {
  type Blocked,
  type BlockingGuard,
  currentPhase,
  type Driver,
  canBeDriven,
  type ExpectedPipeline,
  hasEnded,
  isAsExpected,
  type PhaseRecord,
  PIPELINE_STATES,
  type PipelineRecord,
  type PipelineStep,
  readRecord,
  type ReadRecord,
  type StoredRecord,
} from './record.ts';
export { reopenProblem } from './reopen.ts';
export { DEFAULT_BACKOFF_MS, type Phase, type PhaseHold, type PhaseWork, type Runbook } from './runbook.ts';
export { conditionWithVariables, type Filled, runbookVariables, type Variable, withVariables } from './variables.ts';
