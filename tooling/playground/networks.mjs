/** Weights saved and loaded, layers of all sorts, files that are none. */
import { readFileSync } from 'node:fs';
import { decodeSafetensors, encodeSafetensors } from '@polygrad/data';
import { expect, it } from 'vitest';
import { choose, figure, status, steps, stop, trouble } from './visitor.mjs';
import { isWhole } from '../../packages/compiler/src/fixtures/everyday.ts';

/** @param lab what the tests share: see ../playground.test.mjs */
export function networks(lab) {
  it('saves weights, and loads them after a restart', async () => {
    const { page } = lab;
    const accuracy = await figure(page, 'accuracy');
    const [download] = await Promise.all([page.waitForEvent('download'), page.click('#save')]);
    const file = readFileSync(await download.path());
    const { tensors, metadata } = decodeSafetensors(file);
    // The names of `npm start`.
    expect([...tensors.keys()].sort()).toEqual(
      ['conv1', 'conv2', 'out'].flatMap((layer) => [`${layer}.bias`, `${layer}.weight`]),
    );
    await page.click('#restart');
    await status(page, 'A new network with 9,098 parameters');
    // As another program writes it: without the list of layers.
    const plain = encodeSafetensors(tensors, { format: 'pt' });
    await choose(page, 'mine.safetensors', plain);
    await status(page, 'Weights of mine.safetensors loaded, ready');
    // Inspecting a step has trained a little since it was measured.
    expect(Math.abs((await figure(page, 'accuracy')) - accuracy)).toBeLessThan(1.5);
    expect(metadata['playground.layers']).toBe('conv 8x3, pool 2, conv 16x3, pool 2');
    await choose(page, 'bad.safetensors', 'no');
    expect(await trouble(page)).toMatch(/bad\.safetensors is truncated/);
  });

  it.runIf(isWhole)('builds other layers, says what cannot be built, and takes layers from a file', async () => {
    const { page } = lab;
    await page.click('.layer:nth-child(4) .remove');
    await page.click('[data-add=linear]');
    await page.keyboard.press('ControlOrMeta+A');
    await page.keyboard.type('32');
    expect(await page.textContent('#network-summary')).toMatch(
      /^101,\d{3} parameters, 382,912 multiplications for an image – not built yet/,
    );
    await page.click('.layer:nth-child(4) .up');
    expect(await page.textContent('#network-error')).toMatch(/^Layer 4: a linear layer before it/);
    expect(await page.isDisabled('#build')).toBe(true);
    await page.click('.layer:nth-child(3) .down');
    await page.click('#build');
    await status(page, 'A new network with 101,');
    await page.click('#train');
    await steps(page, 10);
    await stop(page);
    const [download] = await Promise.all([page.waitForEvent('download'), page.click('#save')]);
    await page.click('#default-layers');
    await page.click('#build');
    await status(page, 'A new network with 9,098');
    await page.setInputFiles('#load', await download.path());
    await status(page, 'loaded, ready');
    expect(await page.locator('.layer:not(.last) .layer-kind').allTextContents()).toEqual([
      'Convolution',
      'Max pooling',
      'Convolution',
      'Linear',
    ]);
  });

  it('says of layers and seeds that cannot be what is wrong, and builds nothing', async () => {
    const { page } = lab;
    const before = await page.textContent('#status');
    await page.click('#default-layers');
    const field = page.locator('.layer:nth-child(1) input').first();
    for (const [text, message] of [
      ['', /^Layer 1: channels must be a whole number from 1 to 64$/],
      ['0', /^Layer 1: channels/],
      ['-3', /^Layer 1: channels/],
      ['2.5', /^Layer 1: channels/],
      ['1e9', /^Layer 1: channels/],
    ]) {
      await field.fill(text);
      expect(await page.textContent('#network-error')).toMatch(message);
      expect(await page.isDisabled('#build')).toBe(true);
      expect(await page.locator('.layer.wrong').count()).toBe(1);
    }
    await field.fill('8');
    for (const seed of ['', '-1', '0.5', '4294967296']) {
      await page.fill('#seed', seed);
      expect(await page.textContent('#network-error')).toMatch(/^The seed must be a whole number/);
    }
    await page.fill('#seed', '1');
    await page.click('[data-add=linear]');
    await page.keyboard.press('ControlOrMeta+A');
    await page.keyboard.type('512');
    await page.locator('.layer:nth-child(4) .remove').click();
    await page.locator('.layer:nth-child(2) .remove').click();
    expect(await page.textContent('#network-error')).toMatch(/parameters, the most is 2,000,000; pool more/);
    await page.click('#default-layers');
    for (let i = 0; i < 5; i++) await page.click('[data-add=conv]');
    expect(await page.textContent('#network-error')).toMatch(/^9 layers are more than the 8/);
    await page.click('#default-layers');
    expect(await page.textContent('#network-error')).toBe('');
    expect(await page.textContent('#status')).toBe(before);
  });

  it('keeps its network where a file holds none that fits', async () => {
    const { page } = lab;
    const before = await page.textContent('#network-summary');
    const floats = (count, value = 0) => ({
      dtype: 'float32',
      shape: [count],
      data: new Float32Array(count).fill(value),
    });
    const entries = (values) => new Map(Object.entries(values));
    for (const [name, bytes, message] of [
      ['empty.safetensors', '', /empty\.safetensors/],
      ['picture.png', '\x89PNG\r\n\x1a\n, and so on for some bytes', /picture\.png/],
      [
        'other.safetensors',
        encodeSafetensors(entries({ 'a.weight': floats(3) })),
        /holds the weights of another network/,
      ],
      [
        'nan.safetensors',
        encodeSafetensors(entries({ 'a.weight': floats(3, Number.NaN) })),
        /'a\.weight' holds NaN at 0/,
      ],
      [
        'layers.safetensors',
        encodeSafetensors(entries({ 'a.weight': floats(3) }), { 'playground.layers': 'conv 9999x3' }),
        /channels must be/,
      ],
    ]) {
      await page.evaluate(() => scrollTo(0, document.body.scrollHeight));
      await choose(page, name, bytes);
      expect(await trouble(page), name).toMatch(message);
    }
    expect(await page.textContent('#network-summary')).toBe(before);
  });
}
