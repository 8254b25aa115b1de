/** Certificates of a test's own, made by openssl in a temporary directory: an authority, a server, and who calls it. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface Certificates {
  /** The file of that name. */
  file(name: string): string;
  /** `NAME.pem` and `NAME.key`, for `subject` and for these names and addresses. */
  issue(name: string, subject: string, alternatives: string): void;
  remove(): void;
}

export function makeCertificates(): Certificates {
  const directory = mkdtempSync(join(tmpdir(), 'signalbox-certificates-'));
  const file = (name: string): string => join(directory, name);
  const openssl = (...args: readonly string[]): void => {
    execFileSync('openssl', args, { cwd: directory, stdio: ['ignore', 'ignore', 'pipe'] });
  };
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  openssl('req', '-x509', ...key, '-keyout', 'ca.key', '-out', 'ca.pem', '-subj', '/CN=test authority', '-days', '2');
  return {
    file,
    issue(name, subject, alternatives) {
      openssl('req', ...key, '-keyout', `${name}.key`, '-out', `${name}.csr`, '-subj', `/CN=${subject}`);
      writeFileSync(file(`${name}.ext`), `subjectAltName=${alternatives}\nextendedKeyUsage=serverAuth,clientAuth\n`);
      openssl(
        ...['x509', '-req', '-in', `${name}.csr`, '-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial'],
        ...['-out', `${name}.pem`, '-days', '2', '-extfile', `${name}.ext`],
      );
    },
    remove: () => rmSync(directory, { recursive: true }),
  };
}
