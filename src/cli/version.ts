/** The version of this package: here and not read from package.json, which is not there once all is one file. */
export const VERSION = '0.1.0';
