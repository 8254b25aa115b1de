/** Runbooks as the machine takes them, with as little said as a test needs. */
import type { Guard, Phase, Runbook } from 'signalbox/core';

export function phase(name: string, said: Partial<Phase> = {}): Phase {
  return {
    name,
    run: { function: true },
    pre: [],
    post: [],
    holds: [],
    retries: 0,
    backoffMs: 1_000,
    idempotent: false,
    env: {},
    ...said,
  };
}

export function shell(name: string, line: string, said: Partial<Phase> = {}): Phase {
  return phase(name, { run: { shell: line }, ...said });
}

export function book(...phases: readonly Phase[]): Runbook {
  return { name: 'book', env: {}, phases };
}

export function guard(condition: Guard['condition'], said: Partial<Guard> = {}): Guard {
  return { id: 'guard', condition, ...said };
}
