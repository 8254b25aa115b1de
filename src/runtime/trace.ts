/** Which trace the work of a process belongs to: what its caller says, or what the environment says. */

const TRACEPARENT = /^[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}$/;
const LONGEST = 200;

/** `given` may be a trace id, or a whole `traceparent`. A variable without a usable value is ignored. */
export function traceFrom(
  given: string | undefined,
  environment: Readonly<Record<string, string | undefined>>,
): string | undefined {
  if (given !== undefined) return traceIn(given);
  const { SIGNALBOX_TRACE_ID: own = '', TRACEPARENT: standard = '' } = environment;
  if (own !== '') return traceIn(own).slice(0, LONGEST);
  return TRACEPARENT.exec(standard)?.[1];
}

/** The trace of a `traceparent`; anything else is a trace id itself. */
function traceIn(text: string): string {
  return TRACEPARENT.exec(text)?.[1] ?? text;
}
