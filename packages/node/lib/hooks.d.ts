import { Cluster, StartOptions } from './index';

/**
 * One cluster for a file of tests, as just started for each of them. Read `kafka.brokers` within a test: a reset
 * disconnects all clients, and the brokers listen on other ports then. A test that fails prints the cluster's report; one
 * that passes although no request met one of its faults fails.
 */
export function useKafka(options?: StartOptions): Cluster;
