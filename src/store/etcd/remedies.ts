/** Says what to change in the store's URL when a server could not be connected to. */

const REMEDIES: readonly (readonly [RegExp, string])[] = [
  [/answered in HTTP\/1/, "it is not an etcd server, or this is not etcd's client port"],
  [/wants TLS/, 'write etcds:// instead of etcd://'],
  [/does not speak TLS/, 'write etcd:// instead of etcds://'],
  [
    /alert (bad certificate|certificate required|unknown ca|certificate unknown)/i,
    "it wants a certificate that it knows: set cert and key of the store's URL",
  ],
  [
    /UNABLE_TO_VERIFY|UNABLE_TO_GET_ISSUER|SELF_SIGNED/,
    "set ca of the store's URL to the authority that signed the server's certificate",
  ],
  [/ALTNAME_INVALID/, "set server-name of the store's URL to the name in the server's certificate"],
];

export function withRemedy(message: string): string {
  const remedy = REMEDIES.find(([words]) => words.test(message))?.[1];
  return remedy === undefined ? message : `${message}; ${remedy}`;
}
