/** What gRPC calls the ways in which a call can fail, and what HTTP/2 and HTTP say in its place. */
import { CallFailure } from '../transport.ts';
import { CANCEL, codeName, ENHANCE_YOUR_CALM, REFUSED_STREAM } from './frames.ts';

export const OK = 0;
export const CANCELLED = 1;
export const UNKNOWN = 2;
export const PERMISSION_DENIED = 7;
export const RESOURCE_EXHAUSTED = 8;
export const UNIMPLEMENTED = 12;
export const INTERNAL = 13;
export const UNAVAILABLE = 14;
export const UNAUTHENTICATED = 16;

/** As gRPC's own clients translate them. */
const OF_HTTP_STATUS: Readonly<Record<number, number>> = {
  400: INTERNAL,
  401: UNAUTHENTICATED,
  403: PERMISSION_DENIED,
  404: UNIMPLEMENTED,
  429: UNAVAILABLE,
  502: UNAVAILABLE,
  503: UNAVAILABLE,
  504: UNAVAILABLE,
};

const OF_RESET: Readonly<Record<number, number>> = {
  [REFUSED_STREAM]: UNAVAILABLE,
  [CANCEL]: CANCELLED,
  [ENHANCE_YOUR_CALM]: RESOURCE_EXHAUSTED,
};

/** The peer broke a single exchange off. Only one of the codes says that it had not begun with it. */
export function resetFailure(path: string, code: number): CallFailure {
  const isRefused = code === REFUSED_STREAM;
  const what = isRefused ? 'refused' : 'broke off';
  return new CallFailure(OF_RESET[code] ?? INTERNAL, `the server ${what} ${path} (${codeName(code)})`, isRefused);
}

/** It answered, but not as a gRPC server does. */
export function notGrpcFailure(path: string, httpStatus: number, contentType: string): CallFailure {
  const type = contentType === '' ? 'no content type' : `content type ${shown(contentType)}`;
  const answer = `the server answered ${path} with HTTP status ${httpStatus} and ${type}`;
  return new CallFailure(OF_HTTP_STATUS[httpStatus] ?? UNKNOWN, `${answer}, which is not gRPC`, false);
}

/** The server's own words, if it had any. */
export function statusFailure(path: string, status: string, message: string): CallFailure {
  const code = /^\d{1,3}$/.test(status) ? Number(status) : UNKNOWN;
  const said = percentDecoded(message);
  return new CallFailure(code, said === '' ? `the server ended ${path} with status ${shown(status)}` : said, false);
}

/** gRPC sends what is not plain ASCII as the bytes of UTF-8, each as `%XX`; what does not look like it stays as it is. */
export function percentDecoded(text: string): string {
  if (!text.includes('%')) return text;
  const bytes = text.replace(/%([\da-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  return Buffer.from(bytes, 'latin1').toString('utf8');
}

function shown(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);
}
