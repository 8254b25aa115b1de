import { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import { refuseUnlessThroughServer } from './url.ts';

function commandAt(...path: readonly string[]): Command {
  return path.reduce((at, name) => at.command(name), new Command('signalbox'));
}

describe('through a server', () => {
  it('a command that needs the store says what works instead', () => {
    const url = 'http://127.0.0.1:7300';
    const refused = (...path: readonly string[]): (() => void) => {
      return () => refuseUnlessThroughServer(commandAt(...path), url);
    };
    expect(refused('top')).toThrow(`status --watch, or open ${url} in a browser`);
    expect(refused('pipeline', 'run')).toThrow('start it where its commands are to run');
    expect(refused('maintain')).toThrow('run it where the store is');
    for (const path of [
      ['members', 'join'],
      ['pipeline', 'forget'],
      ['witness', 'verify'],
      ['token', 'list'],
    ]) {
      expect(refused(...path)).not.toThrow();
    }
  });
});
