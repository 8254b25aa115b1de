import { connect } from '../../src/store/etcd/http2/connect.ts';
import { transportContract } from './transport-contract.ts';

transportContract('our own HTTP/2', connect);
