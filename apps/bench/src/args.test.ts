import { describe, expect, it } from 'vitest';
import { ArgumentError, peerNames, readArgs, suiteNames } from './args.ts';

describe('command line', () => {
  it('reads a suite and leaves the rest at its defaults', () => {
    expect(readArgs(['--suite', 'gemm'])).toEqual({
      suites: ['gemm'],
      engine: 'cpu',
      quick: false,
      json: null,
      peers: peerNames,
      threads: [1, 2],
      filter: null,
      rounds: null,
      minutes: 8,
      against: null,
      processor: false,
      help: false,
    });
  });

  it('reads everything', () => {
    const line =
      '--suite all --engine opencl --quick --json a.json --peers torch,jax-js --threads 2 --filter x --rounds 9 --minutes 3 --against ../b';
    const options = readArgs(line.split(' '));
    expect(options.suites).toEqual(suiteNames);
    expect(options).toMatchObject({
      engine: 'opencl',
      quick: true,
      json: 'a.json',
      threads: [2],
      filter: 'x',
      rounds: 9,
      minutes: 3,
      against: '../b',
      processor: false,
    });
    expect(options.peers).toEqual(['torch', 'jax-js']);
    expect(readArgs(['--suite', 'mlp', '--peers', 'none']).peers).toEqual([]);
    expect(readArgs(['--help']).help).toBe(true);
  });

  it.each([
    [[], '--suite is missing; give one of'],
    [['--suite', 'nothing'], "--suite is 'nothing'; give one of gemm"],
    [
      ['--suite', 'gemm', '--engine', 'reference', '--threads', '2'],
      '--threads is for the engines cpu, native, opencl',
    ],
    [['--suite', 'gemm', '--engine', 'warp'], "--engine is 'warp'"],
    [['--suite', 'gemm', '--threads', '0'], "--threads is '0'; give a whole number"],
    [['--suite', 'gemm', '--threads', '1,,2'], "--threads is '1,,2'; give names"],
    [['--suite', 'gemm', '--threads', '1.5'], "--threads is '1.5'"],
    [['--suite', 'gemm', '--rounds', 'many'], "--rounds is 'many'"],
    [['--suite', 'gemm', '--peers', 'scipy'], "--peers is 'scipy'; give one of"],
    [['--suite', 'gemm', '--json', ''], '--json is empty'],
    [['--suite', 'gemm', '--against', ''], '--against is empty'],
    [['--suite', 'gemm', '--processor'], '--processor measures Polygrad alone'],
    [['--suite', 'gemm', '--fast'], '--fast'],
    [['gemm'], 'gemm'],
  ])('refuses %j in one line', (argv, message) => {
    let caught: unknown;
    try {
      readArgs(argv);
    } catch (error) {
      caught = error;
    }
    expect(caught).toBeInstanceOf(ArgumentError);
    expect((caught as ArgumentError).message).toContain(message);
    expect((caught as ArgumentError).message).not.toContain('\n');
  });
});
