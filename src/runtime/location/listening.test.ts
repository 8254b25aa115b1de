import { describe, expect, it } from 'vitest';
import { Listening } from './listening.ts';

const HEAD = '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n';
const FOUR = { '127.0.0.1': '0100007F', '127.0.0.2': '0200007F', any: '00000000' };
const SIX = {
  '::1': '00000000000000000000000001000000',
  any: '00000000000000000000000000000000',
  '::ffff:127.0.0.1': '0000000000000000FFFF00000100007F',
};

function line(address: string, port: number, uid: number, state = '0A'): string {
  const hex = port.toString(16).toUpperCase().padStart(4, '0');
  return `   0: ${address}:${hex} 00000000:0000 ${state} 00000000:00000000 00:00000000 00000000  ${uid}        0 12345 1\n`;
}

const table = (...lines: readonly string[]): string => HEAD + lines.join('');

describe('the users that listen on a port', () => {
  it('are those of the address, and not of another one with the same port', () => {
    const tcp = table(line(FOUR['127.0.0.1'], 7300, 1000), line(FOUR['127.0.0.2'], 7300, 1001));
    const listening = new Listening(tcp, table(line(SIX['::1'], 7300, 1002)));
    expect(listening.usersAt('127.0.0.1', 7300)).toEqual([1000]);
    expect(listening.usersAt('127.0.0.2', 7300)).toEqual([1001]);
    expect(listening.usersAt('::1', 7300)).toEqual([1002]);
    expect(listening.usersAt('127.0.0.3', 7300)).toEqual([]);
    expect(listening.usersAt('127.0.0.1', 7301)).toEqual([]);
  });

  it('of localhost are those of both kinds of loopback', () => {
    const listening = new Listening(table(line(FOUR['127.0.0.1'], 7300, 1000)), table(line(SIX['::1'], 7300, 1002)));
    expect(listening.usersAt('localhost', 7300)).toEqual([1000, 1002]);
  });

  it('are those of a socket for all addresses too, which IPv6 may have for both', () => {
    expect(new Listening(table(line(FOUR.any, 80, 5)), table()).usersAt('127.0.0.1', 80)).toEqual([5]);
    const six = table(line(SIX.any, 80, 6), line(SIX['::ffff:127.0.0.1'], 80, 7));
    expect(new Listening(table(), six).usersAt('127.0.0.1', 80)).toEqual([6, 7]);
    expect(new Listening(table(), six).usersAt('::1', 80)).toEqual([6]);
  });

  it('are not those of connections', () => {
    expect(new Listening(table(line(FOUR['127.0.0.1'], 80, 5, '01')), '').usersAt('127.0.0.1', 80)).toEqual([]);
  });
});
