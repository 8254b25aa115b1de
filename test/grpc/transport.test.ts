import { connect } from '../../src/grpc/connect.ts';
import { connectWithNode } from '../support/etcd/node-http2.ts';
import { transportContract } from './transport-contract.ts';

transportContract('our own HTTP/2', connect);
transportContract("Node's HTTP/2", connectWithNode);
