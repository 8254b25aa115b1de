/** The global symbol under which OpenTelemetry's API package keeps a registered SDK, in every copy of its major version. */
const API = Symbol.for('opentelemetry.js.api.1');

/** Whether an SDK for spans or metrics is registered in this process. Loads nothing. */
export function isRegistered(): boolean {
  const { trace, metrics } =
    (globalThis as Record<symbol, { trace?: unknown; metrics?: unknown } | undefined>)[API] ?? {};
  return trace !== undefined || metrics !== undefined;
}
