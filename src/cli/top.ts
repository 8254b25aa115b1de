/** `signalbox top`: the board on a terminal, live and driven by keys. */
import type { Command } from './command.ts';
import { constants } from 'node:os';
import { isatty } from 'node:tty';
import { pause, systemClock } from '../clock.ts';
import { storeUrl } from '../runtime/location/location.ts';
import type { Signalbox } from '../runtime/signalbox.ts';
import type { GitHubBoard } from '../github/board.ts';
import { withoutPassword } from '../store/index.ts';
import { lookAtEverything } from '../json/status.ts';
import { person, nothingBroken } from './holding.ts';
import { CliExit, EXIT } from './exit-code.ts';
import { paintFor, plural, screen } from './output.ts';
import { withBox } from './store.ts';
import { emptyBoard, Heard } from './top/board.ts';
import { type Frame, frameOf } from './top/frame.ts';
import { FullScreen } from './full-screen.ts';
import { keysIn } from './top/keys.ts';
import { type Deed, FIRST_UI, pressed, type Ui } from './top/ui.ts';

const EXAMPLES = `
Examples:
  signalbox top
  signalbox top --store etcd://box.example.org
  signalbox top --github owner/name                      with the locked issues of a repository

What needs a person comes first, then locks and their queues, semaphores, tasks, pipelines and members. Keys: 1 to 7
choose a view, j and k or the arrows a row, enter shows everything about it, / filters, b breaks a lock after a
question, ? explains keys and signs, q ends it.

It needs a terminal. Without one: signalbox status --watch, and for programs signalbox status --json.`;

export function define(command: Command): void {
  command
    .option('--github <owner/name>', 'list the locks on the issues of this repository too; needs GITHUB_TOKEN or gh')
    .addHelpText('after', EXAMPLES)
    .action(async ({ github }: { github?: string }) => {
      refuseWithoutTerminal(command);
      const issues = github === undefined ? undefined : await issuesOn(github);
      const store = withoutPassword(storeUrl(command.store));
      await withBox(command, (box, signal) => new Top(box, store, issues).run(signal)).catch((error: unknown) => {
        // Node aborts if it cannot restore the modes of a terminal that was closed. A signal ends it without a try.
        if (error instanceof CliExit && error.exitCode === HUNG_UP) process.kill(process.pid, 'SIGHUP');
        throw error;
      });
    });
}

/** Loads what talks to GitHub only for a user who asked for it. */
async function issuesOn(repository: string): Promise<GitHubBoard> {
  // Not index.ts: of what is imported at run time, the build leaves out nothing, and that has an MCP client in it.
  const { LockManager } = await import('../github/lock-manager.ts');
  const { GitHubBoard } = await import('../github/board.ts');
  const locks = new LockManager({ githubRepo: repository, requestTimeoutMs: GITHUB_ANSWERS_MS });
  return new GitHubBoard(repository, locks, systemClock);
}

function refuseWithoutTerminal(command: Command): void {
  const what = command.isJson
    ? 'top has no JSON'
    : isatty(0) && isatty(1) && process.env['TERM'] !== 'dumb'
      ? undefined
      : 'top needs a terminal, for its screen and its keys';
  if (what === undefined) return;
  const instead =
    'signalbox status --watch, or signalbox status --json for programs (with --watch, a line for each change)';
  throw new CliExit(EXIT.usage, `${what}\n  use: ${instead}`);
}

const HUNG_UP = 128 + constants.signals.SIGHUP;
/** A request that is under way keeps the process alive, so a user who quits waits no longer than this. */
const GITHUB_ANSWERS_MS = 5_000;
/** Ages go on. */
const TICK_MS = 1_000;
/** Changes within this time are shown together. */
const GATHER_MS = 200;
/** Renewals are no events, so the state is read again now and then. */
const LOOK_AGAIN_MS = 5_000;
/** A large store is read for at most a fifth of the time. */
const REST = 4;
/** What happened before `top` was started, as far as the store still has it. */
const PAST_MS = 600_000;

class Top {
  readonly #box: Signalbox;
  readonly #issues: GitHubBoard | undefined;
  readonly #heard = new Heard();
  readonly #paint = paintFor(screen());
  readonly #ended = new AbortController();
  #board;
  #ui: Ui = FIRST_UI;
  #frame: Frame | undefined;
  #screen: FullScreen | undefined;
  /** Aborts when something has changed since the last look. */
  #changes = new AbortController();

  constructor(box: Signalbox, store: string, issues: GitHubBoard | undefined) {
    this.#box = box;
    this.#issues = issues;
    this.#board = { ...emptyBoard(store), github: issues?.last };
  }

  async run(interrupted: AbortSignal): Promise<void> {
    const signal = AbortSignal.any([interrupted, this.#ended.signal]);
    this.#screen = new FullScreen(
      () => this.#draw(),
      (text) => this.#type(text),
    );
    const clock = setInterval(() => this.#draw(), TICK_MS);
    try {
      this.#draw();
      void this.#listen(signal);
      void this.#followIssues(signal);
      await this.#keepLooking(signal);
    } finally {
      clearInterval(clock);
      this.#screen.over();
    }
    const { reason } = this.#ended.signal;
    if (reason instanceof CliExit) throw reason;
  }

  /** A store that is away for a moment is asked again; what was last seen stays on the screen. */
  async #keepLooking(signal: AbortSignal): Promise<void> {
    signal.addEventListener('abort', () => this.#changes.abort());
    while (!signal.aborted) {
      this.#changes = new AbortController();
      const begun = performance.now();
      await this.#look();
      this.#draw();
      const took = performance.now() - begun;
      await pause(Math.max(GATHER_MS, took * REST), signal);
      await pause(LOOK_AGAIN_MS, this.#changes.signal);
    }
  }

  async #look(): Promise<void> {
    try {
      const everything = await lookAtEverything(this.#box);
      this.#board = { ...this.#board, everything, trouble: undefined, ...this.#heard.told(Date.now()) };
    } catch (error) {
      const since = this.#board.trouble?.since ?? Date.now();
      const trouble = { since, message: error instanceof Error ? error.message : String(error) };
      this.#board = { ...this.#board, trouble };
    }
  }

  /** Asks GitHub beside everything else: a slow answer holds nothing up. */
  async #followIssues(signal: AbortSignal): Promise<void> {
    while (this.#issues !== undefined && !signal.aborted) {
      const github = await this.#issues.look();
      this.#board = { ...this.#board, github };
      this.#draw();
      await pause(github.everyMs, signal);
    }
  }

  async #listen(signal: AbortSignal): Promise<void> {
    let isPast = true;
    const listener = {
      told: (event: Parameters<Heard['hear']>[0]): void => {
        this.#heard.hear(event);
        if (!isPast) this.#changes.abort();
      },
      forgotten: (): void => undefined,
      caughtUp: (): void => {
        isPast = false;
        this.#changes.abort();
      },
    };
    while (!signal.aborted) {
      // If the store is away, the look says so.
      await this.#box.eventsSince('*', Date.now() - PAST_MS, listener, signal).catch(() => undefined);
      await pause(TICK_MS, signal);
    }
  }

  #draw(): void {
    const target = this.#screen;
    if (target === undefined) return;
    const { trouble, everything } = this.#board;
    // A time that the store does not confirm does not advance.
    const now = trouble === undefined ? Date.now() : (everything?.survey.at ?? trouble.since);
    const clock = new Date().toLocaleTimeString('en-GB');
    const size = { width: target.width, height: target.height };
    this.#frame = frameOf(this.#board, this.#ui, { ...size, now, clock, paint: this.#paint });
    const { view, offsets } = this.#ui;
    if (this.#ui.mode === 'list') this.#ui = { ...this.#ui, offsets: { ...offsets, [view]: this.#frame.offset } };
    target.draw(this.#frame.lines);
  }

  #type(text: string): void {
    for (const key of keysIn(text)) {
      const { sections = [], page = 1, length = 0 } = this.#frame ?? {};
      const { ui, deed } = pressed(this.#ui, key, { sections, page, length, tokenOf: (of) => this.#tokenOf(of) });
      this.#ui = ui;
      if (deed !== undefined) this.#do(deed);
      if (this.#ended.signal.aborted) return;
      this.#draw();
    }
  }

  #do(deed: Deed): void {
    switch (deed.kind) {
      case 'quit':
        return this.#ended.abort();
      case 'interrupt':
        return this.#ended.abort(new CliExit(130, ''));
      case 'suspend':
        return this.#screen?.suspend();
      case 'redraw':
        return this.#screen?.refresh();
      case 'break':
        return void this.#break(deed);
    }
  }

  async #break({ resource, token, reason }: Extract<Deed, { kind: 'break' }>): Promise<void> {
    const slash = resource.indexOf('/');
    const name = resource.slice(slash + 1);
    const one = resource.startsWith('lock/') ? this.#box.lock(name) : this.#box.semaphore(name);
    let message: string;
    try {
      const { broken } = await one.break({ holder: person(), reason, token });
      message = `${resource}: ${broken === 0 ? nothingBroken(token) : `ended ${plural(broken, 'hold')}`}`;
    } catch (error) {
      message = `${resource}: ${(error as Error).message}`;
    }
    this.#ui = { ...this.#ui, message };
    this.#changes.abort();
    this.#draw();
  }

  #tokenOf(resource: string): number | undefined {
    const survey = this.#board.everything?.survey;
    const found = [...(survey?.locks ?? []), ...(survey?.semaphores ?? [])].find((one) => one.resource === resource);
    const tokens = found?.holds.map(({ token }) => token) ?? [];
    return tokens.length === 0 ? undefined : Math.max(...tokens);
  }
}
