/** Where it was measured, and what else was going on there: times of processes mean little on a busy machine. */
import { spawnSync } from 'node:child_process';
import { availableParallelism, loadavg } from 'node:os';

export function machine() {
  const load = loadavg()[0].toFixed(1);
  return `Node ${process.versions.node}, ${availableParallelism()} cores, load ${load} (before this began)`;
}

/** Which Node it is, and by what it drives SQLite. */
export function driverOf(node) {
  const version = spawnSync(node, ['-p', 'process.versions.node'], { encoding: 'utf8' }).stdout.trim();
  return `Node ${version}, ${Number.parseInt(version, 10) >= 22 ? 'node:sqlite' : 'better-sqlite3'}`;
}
