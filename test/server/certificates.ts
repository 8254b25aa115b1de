/** A certificate that vouches for itself, and for the address that tests use. */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';

export function makeCertificates(dir: string, name: string): { readonly cert: string; readonly key: string } {
  const [cert, key] = [join(dir, `${name}.crt`), join(dir, `${name}.key`)];
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
  const names = ['-subj', `/CN=${name}`, '-addext', 'subjectAltName=IP:127.0.0.1'];
  const args = ['req', '-x509', ...newKey, '-keyout', key, '-out', cert, ...names, '-days', '2'];
  execFileSync('openssl', args, { stdio: 'ignore' });
  return { cert, key };
}
