/** Peers that are written in Go, from the sources in bench/peers: built once for each state of their source. */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Where Debian puts the sources of Go packages. */
const PACKAGES = '/usr/share/gocode';
const cache = fileURLToPath(new URL('../../.cache/peers', import.meta.url));

/** The program's path; `undefined` if there is nothing here to build it with. */
export function goPeer(name) {
  if (spawnSync('go', ['version']).error !== undefined || !existsSync(join(PACKAGES, 'src/go.etcd.io/etcd'))) {
    return undefined;
  }
  const source = fileURLToPath(new URL(`../peers/${name}/main.go`, import.meta.url));
  const hash = createHash('sha256').update(readFileSync(source)).digest('hex').slice(0, 16);
  const program = join(cache, `${name}-${hash}`);
  if (!existsSync(program)) build(name, source, program);
  return program;
}

/** Debian's Go packages are made for the old way of finding them: by GOPATH, without modules. */
function build(name, source, program) {
  const path = mkdtempSync(join(tmpdir(), 'signalbox-go-'));
  const folder = join(path, 'src', name);
  try {
    mkdirSync(folder, { recursive: true });
    mkdirSync(cache, { recursive: true });
    copyFileSync(source, join(folder, 'main.go'));
    const env = { ...process.env, GO111MODULE: 'off', GOPATH: `${path}:${PACKAGES}`, GOFLAGS: '' };
    const { status, stderr } = spawnSync('go', ['build', '-o', program, '.'], { cwd: folder, env, encoding: 'utf8' });
    if (status !== 0) throw new Error(`${name} could not be built:\n${stderr}`);
  } finally {
    rmSync(path, { recursive: true, force: true });
  }
}
