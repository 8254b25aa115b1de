/** A store in memory under a clock that the test sets, and agents that reach it over stdio or over HTTP. */
import { open, type Signalbox } from 'signalbox';
import { settle, TestClock } from 'signalbox/testing';
import type { McpLimits } from '../../src/mcp/index.ts';
import type { TestServer } from '../support/server.ts';
import { type Agent, type Generation, httpAgent, mcpServerOn, streamAgent } from './agents.ts';

export type Way = 'stdio' | 'http';
export const WAYS: readonly Way[] = ['stdio', 'http'];

let count = 0;

export class Stage {
  readonly clock = new TestClock();
  readonly way: Way;
  readonly #url = `memory:mcp-${++count}`;
  readonly #limits: Partial<McpLimits>;
  readonly #closing: (() => Promise<void>)[] = [];
  #server: TestServer | undefined;

  constructor(way: Way, limits: Partial<McpLimits> = {}) {
    this.way = way;
    this.#limits = limits;
  }

  async box(): Promise<Signalbox> {
    const box = await open(this.#url, { clock: this.clock, maintenanceMs: 5_000 });
    this.#closing.push(() => box.close());
    return box;
  }

  async server(): Promise<TestServer> {
    this.#server ??= mcpServerOn({ box: await this.box(), clock: this.clock, limits: this.#limits });
    return this.#server;
  }

  /** Over stdio, each agent has a process of its own, so a signalbox of its own. */
  async agent(generation: Generation = '2026-07-28'): Promise<Agent> {
    if (this.way === 'http') {
      const agent = await httpAgent(generation, await this.server());
      this.#closing.unshift(() => agent.close());
      return agent;
    }
    const box = await this.box();
    const { agent, ended } = await streamAgent(generation, { box, clock: this.clock, limits: this.#limits });
    // What `signalbox mcp` does when its client is gone.
    void ended.then(() => box.close());
    this.#closing.unshift(() => agent.close());
    return agent;
  }

  /** Lets everything run that waits for nothing but its turn: requests in this process take some. */
  async turns(): Promise<void> {
    for (let turn = 0; turn < 15; turn++) await settle();
  }

  async pass(seconds: number): Promise<void> {
    await this.turns();
    for (let left = seconds * 1000; left > 0; left -= 1000) {
      await this.clock.advance(Math.min(1000, left));
      await settle();
    }
    await this.turns();
  }

  async close(): Promise<void> {
    this.#server?.server.stop();
    for (const close of this.#closing) await close();
  }
}

/** Whether it has been answered by now. */
export async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  const pending = Symbol('pending');
  await settle();
  return (await Promise.race([promise, Promise.resolve(pending)])) !== pending;
}
