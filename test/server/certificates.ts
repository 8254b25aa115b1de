/** A certificate that vouches for itself. */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';

export function makeCertificates(dir: string, name: string): { readonly cert: string; readonly key: string } {
  const [cert, key] = [join(dir, `${name}.crt`), join(dir, `${name}.key`)];
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
  const args = ['req', '-x509', ...newKey, '-keyout', key, '-out', cert, '-subj', `/CN=${name}`, '-days', '2'];
  execFileSync('openssl', args, { stdio: 'ignore' });
  return { cert, key };
}
