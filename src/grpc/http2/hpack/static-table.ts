/** The header fields that both sides know from the start (RFC 7541, appendix A), by number. */

export interface Field {
  readonly name: string;
  readonly value: string;
}

const TEXT = `
  :authority
  :method GET
  :method POST
  :path /
  :path /index.html
  :scheme http
  :scheme https
  :status 200
  :status 204
  :status 206
  :status 304
  :status 400
  :status 404
  :status 500
  accept-charset
  accept-encoding gzip, deflate
  accept-language
  accept-ranges
  accept
  access-control-allow-origin
  age
  allow
  authorization
  cache-control
  content-disposition
  content-encoding
  content-language
  content-length
  content-location
  content-range
  content-type
  cookie
  date
  etag
  expect
  expires
  from
  host
  if-match
  if-modified-since
  if-none-match
  if-range
  if-unmodified-since
  last-modified
  link
  location
  max-forwards
  proxy-authenticate
  proxy-authorization
  range
  referer
  refresh
  retry-after
  server
  set-cookie
  strict-transport-security
  transfer-encoding
  user-agent
  vary
  via
  www-authenticate`;

const NOTHING: Field = { name: '', value: '' };

/** Numbers begin at 1. */
export const STATIC_TABLE: readonly Field[] = [
  NOTHING,
  ...TEXT.trim()
    .split('\n')
    .map((line) => {
      const [name = '', ...value] = line.trim().split(' ');
      return { name, value: value.join(' ') };
    }),
];

/** The number of the first field that the connection itself brought up. */
export const FIRST_DYNAMIC = STATIC_TABLE.length;

/** What RFC 7541 counts for an entry besides its texts. */
const ENTRY_OVERHEAD = 32;

export function sizeOf(name: string, value: string): number {
  return name.length + value.length + ENTRY_OVERHEAD;
}

/** What both sides remember of each other's header fields, unless settings say otherwise. */
export const DEFAULT_TABLE_SIZE = 4096;
