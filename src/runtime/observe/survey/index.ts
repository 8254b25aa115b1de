export type { SurveyedSession } from './anchored.ts';
export { byCodeUnits } from './found.ts';
export type { Freshness, HoldHealth } from './health.ts';
export type { SurveyedWaiter } from './queue.ts';
export {
  type Survey,
  type SurveyedHold,
  type SurveyedLock,
  type SurveyedLockHold,
  type SurveyedSemaphore,
  type SurveyedSemaphoreHold,
  surveyOf,
  type SurveyOptions,
} from './survey.ts';
