/** Ed25519 keys in PEM files, and signatures with them. */
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  sign,
  verify,
} from 'node:crypto';
import { ifPossible } from './if-possible.ts';

/** A new key, in the form in which files hold it. */
export interface NewKey {
  readonly id: string;
  readonly privatePem: string;
  readonly publicPem: string;
}

export interface Signature {
  /** The id of the key. */
  readonly key: string;
  /** In base64. */
  readonly ed25519: string;
}

export function newKey(): NewKey {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  return {
    id: keyId(publicKey),
    privatePem: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string,
    publicPem: pemOf(publicKey),
  };
}

/** The public key in a PEM file, which may hold the private one; undefined if it holds no Ed25519 key. */
export function publicKeyIn(pem: string): { readonly id: string; readonly publicPem: string } | undefined {
  const key = publicKeyOf(pem);
  return key && { id: keyId(key), publicPem: pemOf(key) };
}

/** Undefined if the PEM text holds no private Ed25519 key. */
export function signerWith(pem: string): ((text: string) => Signature) | undefined {
  const key = ifPossible(() => createPrivateKey(pem));
  if (key?.asymmetricKeyType !== 'ed25519') return undefined;
  const id = keyId(createPublicKey(key));
  return (text) => ({ key: id, ed25519: sign(null, Buffer.from(text, 'utf8'), key).toString('base64') });
}

/** Says what is wrong with a signature; undefined if one of these keys made it for this text. */
export function signatureCheck(pems: readonly string[]): (text: string, signature: Signature) => string | undefined {
  const keys = new Map(pems.flatMap((pem) => publicKeyOf(pem) ?? []).map((key) => [keyId(key), key]));
  return (text, { key: id, ed25519 }) => {
    const key = keys.get(id);
    if (key === undefined) return `it is signed by the key ${id}, which is not trusted`;
    const isRight = verify(null, Buffer.from(text, 'utf8'), key, Buffer.from(ed25519, 'base64'));
    return isRight ? undefined : `its signature by the key ${id} is wrong`;
  };
}

function publicKeyOf(pem: string): KeyObject | undefined {
  // This also takes the public half out of a private key.
  const key = ifPossible(() => createPublicKey(pem));
  return key?.asymmetricKeyType === 'ed25519' ? key : undefined;
}

/** The first 16 digits of the SHA-256 of the 32 bytes of the key. */
function keyId(key: KeyObject): string {
  const raw = Buffer.from((key.export({ format: 'jwk' }) as { x: string }).x, 'base64url');
  return createHash('sha256').update(raw).digest('hex').slice(0, 16);
}

function pemOf(key: KeyObject): string {
  return key.export({ type: 'spki', format: 'pem' }) as string;
}
