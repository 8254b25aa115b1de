// @ts-check
// npm run test:mcp-conformance: the official conformance suite of MCP against /mcp of a server on this machine.

import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createServer, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ensure, exitUnlessZero, root } from './ensure.mjs';
import { argumentsFor } from './usage.mjs';

const SUITE = '@modelcontextprotocol/conformance@0.2.0-alpha.12';
/** The suite needs a newer Node than signalbox. */
const NODE = 'node@24';
const REVISION = '2026-07-28';

/** Scenarios that need nothing of their own on the server. */
const EXPECTED = [
  ...['tools-list', 'resources-list', 'prompts-list', 'sep-2164-resource-not-found', 'server-sse-multiple-streams'],
  ...['dns-rebinding-protection', 'caching', 'http-header-validation', 'input-required-result-unsupported-methods'],
  ...['input-required-result-ignore-extra-params', 'input-required-result-validate-input'],
];

/** The suite is written for a demonstration server. A check may fail for these reasons, and for no other. */
const EXPECTED_FAILURES = [
  {
    why: 'calls a tool of the demonstration server (test_simple_text, slow_compute, …)',
    pattern: /there is no tool "\w+" for this token|^Tool '\w+' not found|^tools\/call for failing_job returned error/,
  },
  { why: 'asks for a prompt of the demonstration server', pattern: /Prompt test_\w+ not found/ },
  { why: 'reads a resource of the demonstration server', pattern: /Resource not found: test:/ },
  { why: 'says itself that there is nothing to test', pattern: /^Not testable: / },
  {
    why: 'follows a check that failed for such a reason',
    pattern:
      /^Prerequisite failed: |fixture from Check \d unavailable|^Expected InputRequiredResult with inputRequests/,
  },
];

const USAGE = `Usage: npm run test:mcp-conformance
Downloads ${SUITE} and ${NODE}, and runs the suite against a server of its own, which takes a minute.
Passes if these scenarios do: ${EXPECTED.join(', ')};
and if every other check fails only because it needs something that only the suite's demonstration server has.`;

argumentsFor(USAGE, () => false);
ensure();
const { serve } = await import(`${root}/dist/server/index.js`);
const { mcpOverHttp } = await import(`${root}/dist/mcp/index.js`);
const serving = await serve({
  ...{ store: 'memory:', port: 0, host: '127.0.0.1' },
  mcp: (/** @type {unknown} */ box) => Promise.resolve(mcpOverHttp(box, { version: '0' })),
});
const door = await withToken(serving.url, serving.localToken);
exitUnlessZero(await runSuite(door.url));
door.close();
await serving.close();

async function runSuite(/** @type {string} */ url) {
  const results = mkdtempSync(join(tmpdir(), 'signalbox-conformance-'));
  const words = ['-y', '-p', NODE, '-p', SUITE, 'conformance', 'server', '-o', results];
  const child = spawn('npx', [...words, '--url', `${url}/mcp`, '--requirements', REVISION]);
  let printed = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (/** @type {string} */ text) => (printed += text));
  }
  await new Promise((resolve) => child.on('close', resolve));
  const summary = printed.slice(printed.indexOf('=== SUMMARY'));
  const missing = EXPECTED.filter((name) => !summary.includes(`✓ ${name}: `));
  const failures = failuresIn(results);
  rmSync(results, { recursive: true });
  const reasonOf = (/** @type {string} */ message) => EXPECTED_FAILURES.find(({ pattern }) => pattern.test(message));
  const others = failures.filter(({ message }) => reasonOf(message) === undefined);
  console.log(/^Total: .*$/m.exec(summary)?.[0] ?? printed);
  for (const { why, pattern } of EXPECTED_FAILURES) {
    const count = failures.filter(({ message }) => reasonOf(message)?.pattern === pattern).length;
    console.log(`  ${String(count).padStart(2)} failed as expected: the check ${why}`);
  }
  for (const { check, message } of others) console.log(`  FAILED: ${check}: ${message}`);
  console.log(
    missing.length === 0 ? `All ${EXPECTED.length} expected scenarios pass.` : `Failed: ${missing.join(', ')}`,
  );
  return missing.length === 0 && others.length === 0 ? 0 : 1;
}

/** Of all scenarios: each has a folder with its checks. */
function failuresIn(/** @type {string} */ folder) {
  return readdirSync(folder).flatMap((scenario) => {
    /** @type {{ id: string, status: string, errorMessage?: string }[]} */
    const checks = JSON.parse(readFileSync(join(folder, scenario, 'checks.json'), 'utf8'));
    const failed = checks.filter(({ status }) => status === 'FAILURE');
    return failed.map(({ id, errorMessage = '' }) => ({ check: `${scenario} ${id}`, message: errorMessage }));
  });
}

/** The suite sends no token: adds one to every request. */
async function withToken(/** @type {string} */ url, /** @type {string} */ token) {
  const { hostname, port } = new URL(url);
  const server = createServer((asked, answer) => {
    const headers = { ...asked.headers, authorization: `Bearer ${token}` };
    const onward = request({ host: hostname, port, path: asked.url, method: asked.method, headers }, (got) => {
      answer.writeHead(got.statusCode ?? 502, got.headers);
      got.pipe(answer);
    });
    onward.on('error', () => answer.destroy());
    answer.on('close', () => onward.destroy());
    asked.pipe(onward);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(undefined)));
  const { port: own } = /** @type {import('node:net').AddressInfo} */ (server.address());
  const close = () => {
    server.close();
    server.closeAllConnections();
  };
  return { url: `http://127.0.0.1:${own}`, close };
}
