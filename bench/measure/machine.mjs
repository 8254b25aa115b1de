/** Where it was measured, and what else was going on there: times of processes mean little on a busy machine. */
import { availableParallelism, loadavg } from 'node:os';

export function machine() {
  const load = loadavg()[0].toFixed(1);
  return `Node ${process.versions.node}, ${availableParallelism()} cores, load ${load} (before this began)`;
}
