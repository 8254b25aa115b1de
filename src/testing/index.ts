export type { Question } from './adapters/fake.ts';
export { type FakeAdapters, fakeAdapters, type FakeWorld } from './adapters/fake-adapters.ts';
export { FakeCommands, type FakeRun } from './adapters/fake-commands.ts';
export { FakeFiles } from './adapters/fake-files.ts';
export { FakeGit, type FakeGitState } from './adapters/fake-git.ts';
export { type FakeIssue, FakeIssues } from './adapters/fake-issues.ts';
export { FakeSessions } from './adapters/fake-sessions.ts';
export { type FakeGitHub, fakeGitHub } from './github.ts';
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
export { type MockMember, MockMembershipView } from './mock-membership.ts';
export {
  type ClusterProcess,
  type ClusterReport,
  type SeenView,
  TestCluster,
  type TestClusterOptions,
} from './test-cluster.ts';
export { settle, TestClock } from './test-clock.ts';
export { simulate, type SimulationReport, type Workload } from './simulation/simulate.ts';
export { Violation } from './simulation/checker.ts';
export type { Exchange, Fault, FaultKind, LocalGitHub, LocalGitHubOptions } from '../github/local/local-github.ts';
