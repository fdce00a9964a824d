/** Options of a cluster; `args` are further options of `understudy serve`, one element per argument. */
export interface StartOptions {
  /** Number of brokers, or their ids, such as "0,1,2". */
  brokers?: number | string;
  /** Initial topics: ["orders:3"] or { orders: 3 }. */
  topics?: string[] | Record<string, number>;
  /** Settings of brokers, by Kafka's names. */
  settings?: Record<string, string | number | boolean>;
  /** Behave like this release of Kafka, such as "3.9". */
  asVersion?: string;
  seed?: number;
  /** A data directory in Kafka's own file formats; by default all data is kept in memory. */
  dataDir?: string;
  args?: string[];
  /** The server's command; by default UNDERSTUDY_COMMAND, then `understudy` on the PATH, the binary, a container. */
  command?: string;
  /** The image of the container; by default UNDERSTUDY_IMAGE, then understudy:VERSION. */
  image?: string;
  /** Time limit for the start in milliseconds; 120,000 by default. */
  startLimitMs?: number;
}

export type Bytes = string | null | { base64: string };

export interface FaultMatch {
  api?: string;
  versions?: [number, number];
  broker?: number;
  listener?: string;
  client_id?: string;
  topic?: string;
  partition?: number;
  offset?: number;
  group?: string;
  transactional_id?: string;
  request?: Record<string, unknown>;
}

export interface FaultDo {
  error?: string;
  delay_ms?: number;
  where?: 'before' | 'after';
  drop?: true;
  disconnect?: 'close' | 'reset';
  throttle_ms?: number;
  alter?: Record<string, unknown>;
  bytes?: Record<string, unknown>;
  apply_then?: { error?: string; disconnect?: 'close' | 'reset'; drop?: true; delay_ms?: number };
}

export interface FaultRequest {
  match?: FaultMatch;
  do: FaultDo;
  skip?: number;
  /** How many requests it affects; null: all. 1 by default. */
  times?: number | null;
  probability?: number;
}

export interface FaultState {
  id: string;
  hits: number;
  match: FaultMatch;
  do: FaultDo;
  skip: number;
  times: number | null;
  probability: number;
  /** How many more requests it affects; 0: it is exhausted, null: any number. */
  remaining: number | null;
  /** `match` and `do` in plain English. */
  meets: string;
  does: string;
}

export interface ReportedRequest {
  id: number;
  at_ms: number;
  text: string;
  api: string;
  error: string | null;
  fault: string | null;
  names: string[];
}

export interface ReportedRefusal {
  subject: string;
  error: string;
  why: string;
  at_ms: number;
}

/** The cluster's report for a failed test; `text` has all of it. */
export interface Report {
  text: string;
  now_ms: number;
  requests: ReportedRequest[];
  refusals: ReportedRefusal[];
  unmet_faults: FaultState[];
  hints: string[];
  diagrams: string[];
}

export interface ClockState {
  now_ms: number;
  ahead_ms: number;
  frozen: boolean;
}

export interface Refusal {
  why: string;
  error: string | null;
  at_ms: number | null;
  rule: string;
  citation: string;
  forgotten: number;
}

export interface RecordToWrite {
  value?: Bytes;
  key?: Bytes;
  partition?: number;
  timestamp_ms?: number;
  headers?: unknown;
}

export interface Written {
  partition: number;
  offset: number;
}

/** A record of a partition; the control plane's documentation has its other fields. */
export interface KafkaRecord {
  offset: number;
  key: Bytes;
  value: Bytes;
  [field: string]: unknown;
}

export interface JournalQuery {
  id?: number;
  api?: string;
  client_id?: string;
  connection?: number;
  broker?: number;
  topic?: string;
  group?: string;
  transactional_id?: string;
  error?: string;
  errors?: boolean;
  outcome?: string;
  fault?: string;
  since?: number;
  limit?: number;
}

export interface JournalEntry {
  id: number;
  at_ms: number;
  api: string;
  version: number;
  client_id: string | null;
  error: string | null;
  request: Record<string, unknown>;
  response: Record<string, unknown> | null;
  [field: string]: unknown;
}

export class ControlError extends Error {
  readonly status: number;
  readonly field?: string;
}

export interface AskOptions {
  /** Time limit in milliseconds; by default `timeoutMs` of the cluster. */
  timeoutMs?: number;
  signal?: AbortSignal;
}

export class Cluster {
  private constructor();
  static connect(control: string, token?: string): Promise<Cluster>;
  /** HOST:PORT of each broker; a reset changes them. */
  readonly brokers: string[];
  readonly bootstrapServers: string;
  readonly control: string;
  /** Time limit of each request in milliseconds; 30,000 by default. */
  timeoutMs: number;
  ask<T = any>(method: string, path: string, body?: unknown, options?: AskOptions): Promise<T>;
  reset(options?: { keep?: string[]; disconnect?: boolean }): Promise<void>;
  report(options?: { since?: number; limit?: number }): Promise<Report>;
  advance(by: { ms?: number; seconds?: number; minutes?: number; hours?: number; days?: number }): Promise<ClockState>;
  freeze(): Promise<ClockState>;
  thaw(): Promise<ClockState>;
  addFault(fault: FaultRequest): Promise<FaultState>;
  /** Rejects after `timeoutMs`, 10,000 by default, if fewer requests have met the fault. */
  waitHits(fault: FaultState | string, hits?: number, timeoutMs?: number): Promise<FaultState>;
  unmetFaults(): Promise<FaultState[]>;
  clearFaults(): Promise<{ removed: number }>;
  createTopic(name: string, options?: { partitions?: number; replication_factor?: number; configs?: Record<string, string> }): Promise<unknown>;
  topic(name: string): Promise<any>;
  write(topic: string, ...records: (string | RecordToWrite)[]): Promise<Written[]>;
  /** The first 100 records by default, or `limit`, up to 10,000. */
  records(topic: string, partition?: number, options?: { offset?: number; limit?: number; isolation?: string }): Promise<KafkaRecord[]>;
  killBroker(id: number): Promise<unknown>;
  stopBroker(id: number): Promise<unknown>;
  startBroker(id: number): Promise<unknown>;
  pauseBroker(id: number): Promise<unknown>;
  resumeBroker(id: number): Promise<unknown>;
  group(id: string): Promise<any>;
  whyGroup(id: string): Promise<Refusal>;
  transaction(id: string): Promise<any>;
  whyTransaction(id: string): Promise<Refusal>;
  journal(conditions?: JournalQuery): Promise<JournalEntry[]>;
  log(): string;
  stop(): Promise<void>;
}

export function start(options?: StartOptions): Promise<Cluster>;
