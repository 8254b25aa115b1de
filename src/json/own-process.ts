/**
 * Finds the process behind a request or a detached hold. A server asks the store for its clients, so the session that the store
 * knows is the server's: a user who kills that pid because a client waits for too long kills the server.
 */
import type { Json } from '../core/index.ts';
import { isRecord } from '../core/shape.ts';
import type { SurveyedSession } from '../runtime/observe/survey/index.ts';

/** What a server says about its session, so that nobody takes it for the session of a client. */
export const SERVES = { isServer: true } as const;

/** Undefined if only the server of that process is known. `metadata`: of the request, in which `run` notes its process. */
export function ownProcess(
  session: SurveyedSession | undefined,
  metadata: Json | undefined,
): SurveyedSession | undefined {
  if (session === undefined) return undefined;
  const { id, about } = session;
  const { command, pid, host } = isRecord(metadata) ? metadata : {};
  const isNoted = typeof command === 'string' && typeof pid === 'number' && typeof host === 'string';
  if (isNoted && (pid !== session.pid || host !== session.host))
    return { id, host, pid, user: undefined, directory: undefined, about: null };
  return isRecord(about) && about['isServer'] === true ? undefined : session;
}
