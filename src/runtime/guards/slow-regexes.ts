/**
 * Finds regular expressions that take for ever. A pattern such as `/(a+)+$/` may never end on a hostile text; meanwhile
 * nothing else in this process would run, and its leases would end. So each pattern first runs for a limited time where
 * it can be stopped.
 */
import { createContext, Script } from 'node:vm';
import { type Condition, type Gathered, type Inputs, regexSearches } from '../../core/index.ts';

/** The limit for all patterns of one look. An ordinary pattern needs milliseconds, even for the largest file. */
const LIMIT_MS = 500;
const TRIED = new Script('regex.test(text)');

/** A text that cannot be searched in time counts as one that could not be read. */
export function withoutSlow(condition: Condition, inputs: Inputs): Inputs {
  let leftMs = LIMIT_MS;
  const endless: Record<string, { readonly error: string }> = {};
  for (const { key, path, pattern, regex } of regexSearches(condition)) {
    const text = textIn(inputs[key]);
    if (text === undefined || key in endless) continue;
    const from = performance.now();
    if (leftMs < 1 || !ends(regex, text, leftMs)) {
      endless[key] = { error: `${pattern} takes longer than ${LIMIT_MS} ms to be looked for in ${path}` };
    }
    leftMs -= performance.now() - from;
  }
  return { ...inputs, ...endless };
}

function textIn(found: Gathered<'fileText'> | undefined): string | undefined {
  return found === undefined || 'error' in found ? undefined : found.value?.text;
}

function ends(regex: RegExp, text: string, limitMs: number): boolean {
  try {
    TRIED.runInContext(createContext({ regex, text }), { timeout: Math.ceil(limitMs) });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_SCRIPT_EXECUTION_TIMEOUT') return false;
    throw error;
  }
}
