export type { After, Before, Call, Decision, Faults } from './faults.ts';
export { faultyStore } from './faulty-store.ts';
export { type Fate, ScriptedFaults } from './scripted-faults.ts';
export {
  type ContractSubject,
  keepsPromise,
  type StorePromise,
  storeContract,
  storePromises,
  type TestRunner,
} from './store-contract.ts';
export { settle, TestClock } from './test-clock.ts';
export { simulate, type SimulationReport, type Workload } from './simulation/simulate.ts';
export { Violation } from './simulation/checker.ts';
