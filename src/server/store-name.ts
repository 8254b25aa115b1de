/** The name of the store to show to people: a word that does not reveal where the store is. */
import { basename, dirname } from 'node:path';
import type { StoreName } from './operation.ts';

/** `file:/home/ann/app/.git/signalbox` becomes `app`; an etcd URL becomes its hosts. */
export function storeName(url: string): StoreName {
  if (/^etcds?:/.test(url)) return { engine: 'etcd', name: hostsOf(url) };
  if (!url.startsWith('file:')) return { engine: 'memory', name: url === 'memory:' ? 'in memory' : url.slice(7) };
  const path = url.replace(/^file:(\/\/)?/, '').replace(/\?.*$/s, '');
  const names = decoded(path).replace(/\/+$/, '');
  const parts = [names, dirname(names), dirname(dirname(names))].map((one) => basename(one));
  const telling = parts.find((part) => part !== '' && part !== '.git' && !/^\.?signalbox$/.test(part));
  return { engine: 'embedded', name: telling ?? 'this machine' };
}

function hostsOf(url: string): string {
  const authority = url.replace(/^etcds?:\/\//, '').replace(/[/?#].*$/s, '');
  return authority.slice(authority.lastIndexOf('@') + 1);
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}
