/** The version of this package. It stands here because a bundle has no package.json to read. */
export const VERSION = '0.1.0';
