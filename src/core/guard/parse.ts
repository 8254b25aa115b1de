/** Parses a condition from JSON or YAML, or reports everything that is wrong with it. */
import { type Condition, issueStatuses, type LeafKind } from './condition.ts';
import { readFilePattern } from './file-pattern.ts';
import {
  boolean,
  isRecord,
  listOf,
  name,
  oneOf,
  type Path,
  positiveInteger,
  type Problem,
  record,
  scalar,
  type Shape,
  text,
  unaccepted,
  unknown,
} from '../shape.ts';

export type ParsedCondition =
  | { readonly ok: true; readonly condition: Condition }
  | { readonly ok: false; readonly problems: readonly Problem[] };

/** Deep enough for anything a person writes, shallow enough for every recursion over a condition. */
export const MAX_DEPTH = 64;
export const MAX_CONDITIONS = 1_000;

const TREE = `a tree of at most ${MAX_CONDITIONS} conditions, nested at most ${MAX_DEPTH} deep`;
const CONDITION = 'one condition such as {"lockFree":"main"}; several go into a list under "all"';

/** Never throws, whatever the JSON or YAML contains. */
export function parseCondition(value: unknown): ParsedCondition {
  const problems = checkTree(value);
  return problems.length === 0 ? { ok: true, condition: value as Condition } : { ok: false, problems };
}

function checkTree(root: unknown): readonly Problem[] {
  const problems: Problem[] = [];
  let conditions = 0;

  function check(value: unknown, path: Path, depth: number): void {
    conditions++;
    if (conditions > MAX_CONDITIONS) {
      // Reported once; a list of all the others would not help.
      if (conditions === MAX_CONDITIONS + 1) problems.push(unaccepted(value, path, TREE));
      return;
    }
    if (depth > MAX_DEPTH) {
      problems.push(unaccepted(value, path, TREE));
      return;
    }
    const entry = onlyEntryOf(value);
    if (entry === undefined) problems.push(unaccepted(value, path, CONDITION));
    else checkEntry(entry[0], entry[1], [...path, entry[0]], depth);
  }

  function checkEntry(key: string, argument: unknown, path: Path, depth: number): void {
    if (key === 'not') {
      check(argument, path, depth + 1);
    } else if (key === 'all' || key === 'any') {
      if (!Array.isArray(argument)) problems.push(unaccepted(argument, path, 'a list of conditions'));
      else for (const [at, child] of argument.entries()) check(child, [...path, at], depth + 1);
    } else if (Object.hasOwn(leafShapes, key)) {
      for (const problem of leafShapes[key as LeafKind](argument, path)) problems.push(problem);
    } else {
      problems.push({ path, message: unknown(key, conditionKeys, 'is not a condition') });
    }
  }

  check(root, [], 1);
  return problems;
}

function onlyEntryOf(value: unknown): readonly [key: string, argument: unknown] | undefined {
  const entries = isRecord(value) ? Object.entries(value) : [];
  return entries.length === 1 ? entries[0] : undefined;
}

// Leaves

const path = text('a path', 1, 4_096);

/** Refuses two names that never are a branch; git checks the rest of a name when it looks the branch up. */
const branch: Shape = (value, at) =>
  value === 'HEAD' || value === '@' ? [unaccepted(value, at, 'the name of a branch, such as main')] : name(value, at);

const issueId = scalar(
  'the name of an issue, or its number of at least 1',
  (value) => name(value, []).length === 0 || positiveInteger(value, []).length === 0,
);

const search = text('a search', 1, 4_096);
const issueQuery = record({ query: search }, { min: positiveInteger });

const issueFields = record(
  {},
  {
    labels: listOf('label', name),
    ids: listOf('issue id', issueId),
    assignee: name,
    status: oneOf(issueStatuses),
    milestone: name,
    min: positiveInteger,
    // `query` stands instead of all these; it is listed here so that the message for a wrong key of a filter names it.
    query: search,
  },
);

const issueFilter: Shape = (value, at) =>
  isRecord(value) && Object.hasOwn(value, 'query') ? issueQuery(value, at) : issueFields(value, at);

const heldLock = record({ name }, { by: name });

const directory = text('a directory, or nothing for the current one', 1, 4_096);
const worktreeAt = record({}, { path: directory });

const filePatternText = text('a piece of text or /regex/flags', 1, 4_096);

const filePattern: Shape = (value, at) => {
  const problems = filePatternText(value, at);
  if (problems.length > 0) return problems;
  const pattern = readFilePattern(value as string);
  return pattern.kind === 'invalid' ? [unaccepted(value, at, `a valid regular expression (${pattern.why})`)] : [];
};

const shellLine = text('a shell command or a list of a program and its arguments', 1, 65_536);
const program = text('a program', 1, 4_096);
const argument = text('an argument', 0, 65_536);
const words = listOf('word', (value, at) => (at.at(-1) === 0 ? program : argument)(value, at));

const leafShapes: Readonly<Record<LeafKind, Shape>> = {
  lockFree: name,
  lockHeld: (value, at) => (isRecord(value) ? heldLock : name)(value, at),
  semaphoreAvailable: record({ name, slots: positiveInteger }, {}),
  issuesComplete: issueFilter,
  noBlockedIssues: issueFilter,
  issueStatus: record({ id: issueId, expected: oneOf(issueStatuses) }, {}),
  branchExists: branch,
  branchNotExists: branch,
  branchClean: branch,
  worktreeClean: (value, at) => (value === null ? [] : (isRecord(value) ? worktreeAt : directory)(value, at)),
  branchMerged: record({ branch, into: branch }, {}),
  fileExists: path,
  fileNotExists: path,
  fileContains: record({ path, pattern: filePattern }, {}),
  sessionAlive: name,
  pipelineInPhase: record({ pipeline: name, phase: name }, {}),
  pipelineComplete: name,
  taskDone: name,
  memberAlive: name,
  command: record(
    { cmd: (value, at) => (Array.isArray(value) ? words : shellLine)(value, at) },
    { expectSuccess: boolean, description: name },
  ),
};

/** Every key that a condition can have. */
export const conditionKeys: readonly string[] = [...Object.keys(leafShapes), 'all', 'any', 'not'];
