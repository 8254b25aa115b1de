// @ts-check
// A screenshot as a PNG with 256 colours: a third of the size, and nobody sees the difference on a page with few hues.

import { crc32, deflateSync } from 'node:zlib';

/** Run in the page: Node has no decoder of its own. */
const DECODE = `async (data) => {
  const bitmap = await createImageBitmap(new Blob([Uint8Array.from(atob(data), (one) => one.charCodeAt(0))]));
  const canvas = new OffscreenCanvas(bitmap.width, bitmap.height);
  const context = canvas.getContext('2d');
  context.drawImage(bitmap, 0, 0);
  const { data: bytes } = context.getImageData(0, 0, bitmap.width, bitmap.height);
  let text = '';
  for (let at = 0; at < bytes.length; at += 32768) text += String.fromCharCode(...bytes.subarray(at, at + 32768));
  return { width: bitmap.width, height: bitmap.height, pixels: btoa(text) };
}`;

/**
 * @param {import('playwright-core').Page} page any page, which decodes it
 * @param {Buffer} png
 */
export async function smaller(page, png) {
  /** @type {{ width: number, height: number, pixels: string }} */
  const { width, height, pixels } = await page.evaluate(`(${DECODE})('${png.toString('base64')}')`);
  return indexed(width, height, Buffer.from(pixels, 'base64'));
}

/** The colours that occur most, and the nearest of them for the rest. */
function indexed(/** @type {number} */ width, /** @type {number} */ height, /** @type {Buffer} */ rgba) {
  /** @type {Map<number, number>} */
  const counts = new Map();
  const colours = new Uint32Array(width * height);
  for (let at = 0; at < colours.length; at++) {
    const colour = rgba.readUInt32BE(at * 4) >>> 8;
    colours[at] = colour;
    counts.set(colour, (counts.get(colour) ?? 0) + 1);
  }
  // Rare and bright ones say something; of the many greys between ink and paper none is missed.
  const weight = (/** @type {readonly [number, number]} */ [colour, count]) =>
    count * (1 + brightness(colour) ** 2 / 16);
  // Half of the palette is for the most frequent ones, or the many blues of a chart would leave no grey for its text.
  const frequent = [...counts].sort(([, one], [, other]) => other - one).slice(0, 128);
  const telling = [...counts].sort((one, other) => weight(other) - weight(one)).slice(0, 256);
  const palette = [...new Set([...frequent, ...telling].map(([colour]) => colour))].slice(0, 256);
  const places = new Map(palette.map((colour, place) => [colour, place]));
  const rows = Buffer.alloc(height * (width + 1));
  for (let at = 0; at < colours.length; at++) {
    const colour = /** @type {number} */ (colours[at]);
    const place = places.get(colour) ?? nearest(palette, colour);
    places.set(colour, place);
    rows[at + Math.floor(at / width) + 1] = place;
  }
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 3, 0, 0, 0], 8);
  const table = Buffer.from(palette.flatMap((colour) => [colour >> 16, (colour >> 8) & 255, colour & 255]));
  const signature = Buffer.from([137, 80, 78, 71, 13, 10, 26, 10]);
  const parts = /** @type {const} */ ([
    ['IHDR', header],
    ['PLTE', table],
    ['IDAT', deflateSync(rows, { level: 9 })],
    ['IEND', Buffer.alloc(0)],
  ]);
  return Buffer.concat([signature, ...parts.map(([kind, bytes]) => chunk(kind, bytes))]);
}

function brightness(/** @type {number} */ colour) {
  const parts = [colour >> 16, (colour >> 8) & 255, colour & 255];
  return Math.max(...parts) - Math.min(...parts);
}

function nearest(/** @type {readonly number[]} */ palette, /** @type {number} */ colour) {
  let best = 0;
  let least = Infinity;
  for (const [place, other] of palette.entries()) {
    const distance = [16, 8, 0].reduce(
      (sum, shift) => sum + (((colour >> shift) & 255) - ((other >> shift) & 255)) ** 2,
      0,
    );
    if (distance >= least) continue;
    least = distance;
    best = place;
  }
  return best;
}

function chunk(/** @type {string} */ kind, /** @type {Buffer} */ bytes) {
  const body = Buffer.concat([Buffer.from(kind, 'latin1'), bytes]);
  const [length, check] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(bytes.length);
  check.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, check]);
}
