// The page for addresses that lead nowhere: its header works as everywhere.
import { header } from "./api.js";

header("");
