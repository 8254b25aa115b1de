import { describe, expect, it } from 'vitest';
import { Failure } from '../../failure.ts';
import { parseEtcdUrl, withoutPassword, withWholePaths } from './url.ts';

function refusal(url: string): string {
  try {
    parseEtcdUrl(url);
  } catch (error) {
    if (Failure.is(error, 'invalid')) return error.message;
    throw error;
  }
  throw new Error(`${url} was accepted`);
}

describe('a store on etcd', () => {
  it.each([
    ['etcd://a', [{ host: 'a', port: 2379 }]],
    [
      'etcd://a:1,b:2,c',
      [
        { host: 'a', port: 1 },
        { host: 'b', port: 2 },
        { host: 'c', port: 2379 },
      ],
    ],
    [
      'etcd://[::1]:7,[fe80::1%25eth0]'.replace('%25eth0', ''),
      [
        { host: '::1', port: 7 },
        { host: 'fe80::1', port: 2379 },
      ],
    ],
    ['etcds://u:p@10.0.0.1:4/team', [{ host: '10.0.0.1', port: 4 }]],
  ])('%s names its servers', (url, endpoints) => {
    expect(parseEtcdUrl(url).endpoints).toEqual(endpoints);
  });

  it('has a user and a password, in which every character can be written', () => {
    const { user, password } = parseEtcdUrl('etcd://j%40x:p%3A%2F%3F%23%25@host/a');
    expect([user, password]).toEqual(['j@x', 'p:/?#%']);
    expect(parseEtcdUrl('etcd://only@host')).toMatchObject({ user: 'only', password: '' });
    expect(parseEtcdUrl('etcd://host').user).toBeUndefined();
  });

  it('has a prefix of its own if one is named, which ends with a slash', () => {
    expect(parseEtcdUrl('etcd://a').prefix).toBeUndefined();
    expect(parseEtcdUrl('etcd://a/').prefix).toBeUndefined();
    expect(parseEtcdUrl('etcd://a/team').prefix).toBe('team/');
    expect(parseEtcdUrl('etcd://a/x/y%20z/').prefix).toBe('x/y z/');
  });

  it('has settings', () => {
    const url = 'etcds://a?ca=/ca.pem&cert=c.pem&key=k.pem&server-name=etcd.example&tasks-prefix=/t&compact=yes';
    expect(parseEtcdUrl(url)).toMatchObject({
      isSecure: true,
      ca: '/ca.pem',
      cert: 'c.pem',
      key: 'k.pem',
      serverName: 'etcd.example',
      plainPrefix: '/t',
      compacts: true,
    });
    expect(parseEtcdUrl('etcd://a').compacts).toBe(false);
  });

  it.each([
    ['etcd:a', /expected etcd:\/\//],
    ['etcd://', /no server; expected HOST/],
    ['etcd://a,', /no server/],
    ['etcd://a:b', /no server/],
    ['etcd://a:0', /0 is no port/],
    ['etcd://a:70000', /no port/],
    ['etcd://::1', /no server/],
    ['etcd://@a', /no user/],
    ['etcd://a/%zz', /hexadecimal/],
    ['etcd://a?timeout=1', /"timeout" is no setting; expected ca, cert, key, server-name/],
    ['etcds://a?ca=x&ca=y', /twice/],
    ['etcds://a?ca=', /empty/],
    ['etcd://a?ca=x', /etcds:/],
    ['etcds://a?cert=x', /both cert and key/],
    ['etcd://a?compact=maybe', /yes or no/],
    ['etcd://a#b', /expected/],
  ])('%s is refused with what is accepted', (url, why) => {
    expect(refusal(url)).toMatch(why);
  });

  it.each([
    'etcd://me:secret@',
    'etcd://me:se@cret@a?x=1',
    'etcd://me:sec/ret@a',
    'etcd://me:secret@a:b,c',
    'etcds:me:secret@a',
    'etcd://me:sec?ret@a',
    'etcd://me:sec#ret@a',
    'etcd://me:sec\nret@a:b',
    'etcd://me:12/sec@a',
    'etcd://me@you:secret@a:b',
    'etcd://me:secret',
    'etcd://me:sec%40a',
    'etcd://me@a?password=secret',
    'etcd://me:secret@a?password-file=x',
  ])('%s shows no password when it is refused, nor a part of it', (url) => {
    expect(refusal(url)).not.toMatch(/sec|12|ret(?!t)/);
  });

  it('may have an @ in the value of a setting', () => {
    expect(parseEtcdUrl('etcds://a?ca=/home/me@b/ca.pem').ca).toBe('/home/me@b/ca.pem');
  });

  it('is shown to people without its password', () => {
    expect(withoutPassword('etcds://me:secret@a:1/x?ca=y')).toBe('etcds://me@a:1/x?ca=y');
    expect(withoutPassword('etcd://a/x')).toBe('etcd://a/x');
    expect(withoutPassword('file:/a:b@c')).toBe('file:/a:b@c');
    expect(withoutPassword('http://me:secret@a:1')).toBe('http://me@a:1');
    expect(withoutPassword('ETCD://me:secret@a:1')).toBe('ETCD://me@a:1');
    expect(withoutPassword('me:secret@a:1')).toBe('me@a:1');
    expect(withoutPassword('etcd://me@a:1/x')).toBe('etcd://me@a:1/x');
    expect(withoutPassword('etcd:me:secret')).toBe('etcd:me');
    expect(withoutPassword('ETCD//me:secret')).toBe('ETCD//me');
    expect(withoutPassword('etcd:localhost:2379')).toBe('etcd:localhost:2379');
    expect(withoutPassword('etcd://[::1]:1/x')).toBe('etcd://[::1]:1/x');
    expect(withoutPassword('etcds://me@a?password-file=/x&ca=y')).toBe('etcds://me@a?password-file=/x&ca=y');
  });

  it.each(['etcd//me:P@a', '//me:P@a', '/me:P@a', 'etcd:me:P@a', 'etcd:/me:P@a', 'ectd:me:P@a', ' etcd://me:P@a'])(
    '%s is mistyped, and shown without its password',
    (url) => {
      expect(withoutPassword(url)).not.toContain('P');
      expect(withoutPassword(url)).toMatch(/@a$/);
    },
  );

  it('may leave its password to a file, which belongs to a user', () => {
    expect(parseEtcdUrl('etcd://me@a?password-file=x')).toMatchObject({ user: 'me', passwordFile: 'x' });
    expect(refusal('etcd://a?password-file=x')).toContain('etcd://USER@HOST');
    expect(refusal('etcd://me:secret@a?password-file=x')).toContain('two passwords');
    expect(withWholePaths('etcd://me@a?password-file=x', '/from')).toBe('etcd://me@a?password-file=/from/x');
  });

  it('means the same wherever its URL is used: its files are named in full', () => {
    expect(withWholePaths('etcds://a?ca=x.pem&server-name=b', '/from')).toBe('etcds://a?ca=/from/x.pem&server-name=b');
    expect(withWholePaths('etcd://a/p', '/from')).toBe('etcd://a/p');
  });
});
