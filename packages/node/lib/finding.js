'use strict';
// Finds the server: an explicit path, UNDERSTUDY_COMMAND, the PATH, a server folder of this version, a container.

const fs = require('node:fs');
const net = require('node:net');
const os = require('node:os');
const path = require('node:path');
const { randomBytes } = require('node:crypto');
const { version } = require('../package.json');

const SERVE = ['serve', '--lifeline'];
const SHARED = ['shared', '--lifeline'];
const FREE_PORTS = ['--port', '0', '--control-port', '0'];

function isProgram(file) {
  try {
    fs.accessSync(file, fs.constants.X_OK);
    return fs.statSync(file).isFile();
  } catch {
    return false;
  }
}

/** Returns the program with this name on the PATH, or undefined. */
function onPath(name) {
  const folders = (process.env.PATH ?? '').split(path.delimiter).filter(Boolean);
  const names = process.platform === 'win32' ? [`${name}.exe`, `${name}.cmd`] : [name];
  return folders.flatMap((folder) => names.map((each) => path.join(folder, each))).find(isProgram);
}

/** Folders where the self-contained binary may be unpacked: in this package, or in the user's cache folder. */
function serverFolders() {
  const cache = process.env.XDG_CACHE_HOME || path.join(os.homedir(), '.cache');
  return [path.join(__dirname, '..', 'server'), path.join(cache, 'understudy', version)];
}

/** Splits a command such as `python3 -m understudy` at blanks; a path with blanks is kept whole if it exists. */
function split(command) {
  return fs.existsSync(command) ? [command] : command.split(/\s+/).filter(Boolean);
}

/**
 * Returns how to start the server: the program and its arguments, without the options of the test.
 * Throws an Error with one sentence that names all locations searched.
 */
async function find({ command, image, options = [] } = {}) {
  const explicit = command || process.env.UNDERSTUDY_COMMAND;
  if (explicit?.trim()) {
    const [program, ...words] = split(explicit);
    const found = program.includes(path.sep) ? isProgram(program) && program : onPath(program);
    if (!found) {
      const name = command ? 'command' : 'UNDERSTUDY_COMMAND';
      throw new Error(`${name} is ${JSON.stringify(explicit)}, but there is no such program`);
    }
    return local(found, words);
  }
  const installed = onPath('understudy');
  if (installed) return local(installed);
  const unpacked = serverFolders().map((folder) => path.join(folder, 'understudy')).find(isProgram);
  if (unpacked) return local(unpacked);
  const docker = onPath('docker');
  const name = image || process.env.UNDERSTUDY_IMAGE || `understudy:${version}`;
  if (docker) return { ...(await container(docker, name, options)), searched: searched(`docker on the PATH (found), to run ${name}`) };
  throw new Error(`there is no understudy server; ${searched('docker on the PATH (not found)')}`);
}

/** Returns what was looked for, in which order, and two ways to get a server. */
function searched(docker) {
  const binaries = serverFolders().map((folder) => path.join(folder, 'understudy'));
  return (
    'looked, in this order, for the option command (not given), UNDERSTUDY_COMMAND (not set), understudy on the PATH (not found), ' +
    `${binaries.map((each) => `${each} (not found)`).join(', ')}, ${docker}. To get a server, run in a checkout of Understudy ` +
    `\`make packages\`, which links its server to ${binaries.at(-1)}, or \`docker build -t understudy:${version} .\``
  );
}

/** A cluster in the server that all test processes of this user share; with UNDERSTUDY_SERVER=own, a server. */
function local(program, words = []) {
  const command = process.env.UNDERSTUDY_SERVER === 'own' ? SERVE : SHARED;
  return { program, words: [...words, ...command, ...FREE_PORTS] };
}

/** A container, whose ports are chosen here, because clients connect to the advertised ones. */
async function container(docker, image, options) {
  const brokers = brokerCount(options);
  const port = await freePorts(brokers + 1);
  const control = port + brokers;
  const token = randomBytes(16).toString('hex');
  const published = Array.from({ length: brokers + 1 }, (_, at) => ['-p', `127.0.0.1:${port + at}:${port + at}`]).flat();
  return {
    program: docker,
    words: [
      // Pass only the names of the token and settings: each user of this machine can read a command line.
      ...['run', '--rm', '-i', '-e', 'UNDERSTUDY_CONTROL_TOKEN', '-e', 'UNDERSTUDY_SET', ...published, image, ...SERVE],
      ...['--host', '0.0.0.0', '--port', String(port), '--advertise', `127.0.0.1:${port}`],
      ...['--control-host', '0.0.0.0', '--control-port', String(control)],
    ],
    token,
    brokers: Array.from({ length: brokers }, (_, at) => `127.0.0.1:${port + at}`),
    control: `http://127.0.0.1:${control}`,
  };
}

function brokerCount(options) {
  const at = options.findLastIndex((each) => each === '--brokers' || each.startsWith('--brokers='));
  const value = at < 0 ? '1' : options[at] === '--brokers' ? options[at + 1] ?? '' : options[at].slice('--brokers='.length);
  if (value.includes(',')) return value.split(',').filter(Boolean).length;
  if (!/^[1-9]\d{0,4}$/.test(value)) throw new Error(`--brokers ${value} is not a number of brokers`);
  return Number(value);
}

/** Returns the first of that many consecutive free ports. */
async function freePorts(count) {
  for (;;) {
    const first = await new Promise((resolve, reject) => {
      const server = net.createServer().once('error', reject);
      server.listen(0, '127.0.0.1', () => {
        const { port } = server.address();
        server.close(() => resolve(port));
      });
    });
    const free = await Promise.all(Array.from({ length: count }, (_, at) => isFree(first + at)));
    if (first + count < 65_536 && free.every(Boolean)) return first;
  }
}

function isFree(port) {
  return new Promise((resolve) => {
    const server = net.createServer().once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}

module.exports = { find, serverFolders };
