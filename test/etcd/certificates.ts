/** A certificate authority of the test's own, and what it vouches for: a server at this machine's address, and a client. */
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

export interface KeyPair {
  readonly key: string;
  readonly cert: string;
  readonly ca: string;
}

export interface Certificates {
  readonly server: KeyPair;
  readonly client: KeyPair;
}

const run = promisify(execFile);

export async function makeCertificates(): Promise<Certificates> {
  const directory = await mkdtemp(join(tmpdir(), 'signalbox-certificates-'));
  const openssl = (...args: string[]) => run('openssl', args, { cwd: directory });
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
  try {
    await openssl(
      'req',
      '-x509',
      ...newKey,
      '-keyout',
      'ca.key',
      '-out',
      'ca.pem',
      '-subj',
      '/CN=authority',
      '-days',
      '2',
    );
    const ca = await readFile(join(directory, 'ca.pem'), 'utf8');
    const signed = async (name: string, extension: string): Promise<KeyPair> => {
      const file = (ending: string) => `${name}.${ending}`;
      await writeFile(join(directory, file('ext')), extension);
      await openssl('req', '-new', ...newKey, '-keyout', file('key'), '-out', file('csr'), '-subj', `/CN=${name}`);
      const signing = ['-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial', '-days', '2', '-extfile', file('ext')];
      await openssl('x509', '-req', '-in', file('csr'), '-out', file('pem'), ...signing);
      const [key, cert] = await Promise.all(
        ['key', 'pem'].map((ending) => readFile(join(directory, file(ending)), 'utf8')),
      );
      return { key: key!, cert: cert!, ca };
    };
    const server = await signed('server', 'subjectAltName=IP:127.0.0.1,DNS:localhost,DNS:etcd.test');
    const client = await signed('client', 'extendedKeyUsage=clientAuth');
    return { server, client };
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}
