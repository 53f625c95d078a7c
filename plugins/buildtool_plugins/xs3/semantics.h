/* What each instruction does: the cases of xs3_run's switch, in the order of instructions.h.
 * One instruction is one line where it can be. */
/* clang-format off */
OPS(STW_2RUS) STORE32(r[i->b] + 4 * i->number, r[i->a]); break;
OPS(LDW_2RUS) LOAD32(r[i->a], r[i->b] + 4 * i->number); break;
OPS(ADD_3R) r[i->a] = r[i->b] + r[i->c]; break;
OPS(SUB_3R) r[i->a] = r[i->b] - r[i->c]; break;
OPS(SHL_3R) r[i->a] = shl_signed(r[i->b], (int32_t)r[i->c]); break;
OPS(SHR_3R) r[i->a] = shr(r[i->b], r[i->c]); break;
OPS(EQ_3R) r[i->a] = r[i->b] == r[i->c]; break;
OPS(AND_3R) r[i->a] = r[i->b] & r[i->c]; break;
OPS(OR_3R) r[i->a] = r[i->b] | r[i->c]; break;
OPS(LDW_3R) LOAD32(r[i->a], r[i->b] + 4 * r[i->c]); break;
OPS(LD16S_3R) {
    int16_t half;
    AT(p, r[i->b] + 2 * r[i->c], 2, 0);
    memcpy(&half, p, 2);
    r[i->a] = (uint32_t)half;
    break;
}
OPS(LD8U_3R) AT(p, r[i->b] + r[i->c], 1, 0); r[i->a] = *p; break;
OPS(ADD_2RUS) r[i->a] = r[i->b] + i->number; break;
OPS(SUB_2RUS) r[i->a] = r[i->b] - i->number; break;
OPS(SHL_2RUS) r[i->a] = shl(r[i->b], i->number); break;
OPS(SHR_2RUS) r[i->a] = shr(r[i->b], i->number); break;
OPS(EQ_2RUS) r[i->a] = r[i->b] == i->number; break;
OPS(LSS_3R) r[i->a] = (int32_t)r[i->b] < (int32_t)r[i->c]; break;
OPS(LSU_3R) r[i->a] = r[i->b] < r[i->c]; break;

OPS(BYTEREV_2R) r[i->a] = __builtin_bswap32(r[i->b]); break;
OPS(CLZ_2R) r[i->a] = r[i->b] == 0 ? 32 : (uint32_t)__builtin_clz(r[i->b]); break;
OPS(BITREV_2R) r[i->a] = bitrev(r[i->b]); break;
OPS(ANDNOT_2R) r[i->a] &= ~r[i->b]; break;
OPS(SEXT_2R) r[i->a] = sext(r[i->a], r[i->b]); break;
OPS(SEXT_RUS) r[i->a] = sext(r[i->a], i->number); break;
OPS(ZEXT_2R) r[i->a] = zext(r[i->a], r[i->b]); break;
OPS(ZEXT_RUS) r[i->a] = zext(r[i->a], i->number); break;
OPS(NOT_2R) r[i->a] = ~r[i->b]; break;
OPS(NEG_2R) r[i->a] = 0 - r[i->b]; break;
OPS(MKMSK_2R) r[i->a] = mask_of(r[i->b]); break;
OPS(MKMSK_RUS) r[i->a] = mask_of(i->number); break;

OPS(BLA_1R) word = r[i->a]; r[XS3_LR] = LINK(); GO_TO_WORD(word); break;
OPS(BAU_1R) GO_TO_WORD(r[i->a]); break;
OPS(BRU_1R) GO(after + scale * r[i->a]); break;
OPS(SETSP_1R) r[XS3_SP] = r[i->a]; break;
OPS(SETDP_1R) r[XS3_DP] = r[i->a]; break;
OPS(SETCP_1R) r[XS3_CP] = r[i->a]; break;
OPS(ECALLF_1R) if (r[i->a] == 0) STOP(XS3_ECALL); break;
OPS(ECALLT_1R) if (r[i->a] != 0) STOP(XS3_ECALL); break;
OPS(GETTIME_1R) r[i->a] = (uint32_t)(limit - left); break;

OPS(GETID_0R) r[i->a] = 0; break;
OPS(NOP_0R) break;

OPS(STWDP_RU6) STORE32(r[XS3_DP] + 4 * i->number, r[i->a]); break;
OPS(STWSP_RU6) STORE32(r[XS3_SP] + 4 * i->number, r[i->a]); break;
OPS(LDWDP_RU6) LOAD32(r[i->a], r[XS3_DP] + 4 * i->number); break;
OPS(LDWSP_RU6) LOAD32(r[i->a], r[XS3_SP] + 4 * i->number); break;
OPS(LDAWDP_RU6) r[i->a] = r[XS3_DP] + 4 * i->number; break;
OPS(LDAWSP_RU6) r[i->a] = r[XS3_SP] + 4 * i->number; break;
OPS(LDC_RU6) r[i->a] = i->number; break;
OPS(LDWCP_RU6) LOAD32(r[i->a], r[XS3_CP] + 4 * i->number); break;
OPS(BRFT_RU6) if (r[i->a] != 0) GO(after + scale * i->number); break;
OPS(BRBT_RU6) if (r[i->a] != 0) GO(after - scale * i->number); break;
OPS(BRFF_RU6) if (r[i->a] == 0) GO(after + scale * i->number); break;
OPS(BRBF_RU6) if (r[i->a] == 0) GO(after - scale * i->number); break;

OPS(BRFU_U6) GO(after + scale * i->number); break;
OPS(BLAT_U6) LOAD32(word, r[11] + 4 * i->number); r[XS3_LR] = LINK(); GO_TO_WORD(word); break;
OPS(EXTDP_U6) r[i->a] = r[XS3_DP] - 4 * i->number; break;
OPS(KCALL_U6) {
    const services_of machine = {m, r};
    const int32_t done = serve(&m->services, &machine, i->number);
    if (i->number == SERVICE_MARK) {
        set_mark(m, (int32_t)(r[0] % XS3_MARKS));
    } else if (i->number == SERVICE_CLOCK) {
        r[0] = (uint32_t)(limit - left);
    } else if (i->number == SERVICE_PIECE) {
        follow_pieces(m, r[0]);
    } else if (done == SERVICE_ENDS) {
        STOP(XS3_EXITED);
    } else if (done == SERVICE_UNKNOWN) {
        STOP(XS3_ILLEGAL_SERVICE);
    }
    break;
}
OPS(BRBU_U6) GO(after - scale * i->number); break;
OPS(ENTSP_U6)
    if (i->number > 0) {
        STORE32(r[XS3_SP], r[XS3_LR]);
        r[XS3_SP] -= 4 * i->number;
    }
    next_dual = 0;
    break;
OPS(EXTSP_U6) r[i->a] = r[XS3_SP] - 4 * i->number; break;
OPS(RETSP_U6)
    word = r[XS3_LR];
    if (i->number > 0) {
        LOAD32(word, r[XS3_SP] + 4 * i->number);
        r[XS3_SP] += 4 * i->number;
        r[XS3_LR] = word;
    }
    GO_TO_WORD(word);
    break;
OPS(CLRSR_U6) break; /* events and interrupts, of which there are none here */
OPS(SETSR_U6) break;
OPS(GETSR_U6) r[11] = 0; break;
OPS(LDAWCP_U6) r[i->a] = r[XS3_CP] + 4 * i->number; break;
OPS(DUALENTSP_U6)
    if (i->number > 0) {
        STORE32(r[XS3_SP], r[XS3_LR]);
        r[XS3_SP] -= 4 * i->number;
    }
    next_dual = 1;
    break;

OPS(BLRF_U10) r[XS3_LR] = LINK(); GO(after + scale * i->number); break;
OPS(BLRB_U10) r[XS3_LR] = LINK(); GO(after - scale * i->number); break;
OPS(LDAPF_U10) r[i->a] = after + scale * i->number; break;
OPS(LDAPB_U10) r[i->a] = after - scale * i->number; break;
OPS(BLACP_U10) LOAD32(word, r[XS3_CP] + 4 * i->number); r[XS3_LR] = LINK(); GO_TO_WORD(word); break;
OPS(LDWCP_U10) LOAD32(r[i->a], r[XS3_CP] + 4 * i->number); break;

OPS(STW_L3R) STORE32(r[i->b] + 4 * r[i->c], r[i->a]); break;
OPS(XOR_L3R) r[i->a] = r[i->b] ^ r[i->c]; break;
OPS(ASHR_L3R) r[i->a] = ashr(r[i->b], r[i->c]); break;
OPS(LDAWF_L3R) r[i->a] = r[i->b] + 4 * r[i->c]; break;
OPS(LDAWB_L3R) r[i->a] = r[i->b] - 4 * r[i->c]; break;
OPS(LDA16F_L3R) r[i->a] = r[i->b] + 2 * r[i->c]; break;
OPS(LDA16B_L3R) r[i->a] = r[i->b] - 2 * r[i->c]; break;
OPS(MUL_L3R) r[i->a] = r[i->b] * r[i->c]; break;
OPS(DIVS_L3R)
OPS(REMS_L3R) {
    const int32_t a = (int32_t)r[i->b], b = (int32_t)r[i->c];
    if (b == 0 || (a == INT32_MIN && b == -1)) {
        STOP(XS3_ARITHMETIC);
    }
    r[i->a] = (uint32_t)(i->op == XS3_OP_DIVS_L3R ? a / b : a % b);
    break;
}
OPS(DIVU_L3R)
OPS(REMU_L3R)
    if (r[i->c] == 0) {
        STOP(XS3_ARITHMETIC);
    }
    r[i->a] = i->op == XS3_OP_DIVU_L3R ? r[i->b] / r[i->c] : r[i->b] % r[i->c];
    break;
OPS(ST16_L3R) {
    const uint16_t half = (uint16_t)r[i->a];
    AT(p, r[i->b] + 2 * r[i->c], 2, 1);
    memcpy(p, &half, 2);
    break;
}
OPS(ST8_L3R) AT(p, r[i->b] + r[i->c], 1, 1); *p = (uint8_t)r[i->a]; break;
OPS(ASHR_L2RUS) r[i->a] = ashr(r[i->b], i->number); break;
OPS(LDAWF_L2RUS) r[i->a] = r[i->b] + 4 * i->number; break;
OPS(UNZIP_L2RUS) if (i->number < 5) unzip(&r[i->a], &r[i->b], i->number); break;
OPS(ZIP_L2RUS) if (i->number < 5) zip(&r[i->a], &r[i->b], i->number); break;
OPS(LDAWB_L2RUS) r[i->a] = r[i->b] - 4 * i->number; break;
OPS(CRC_L3R) r[i->a] = crc(r[i->a], r[i->b], r[i->c], 32); break;
OPS(LSATS_L3R) lsats(&r[i->a], &r[i->b], r[i->c]); break;
OPS(LDDSP_L2RUS) LOAD64(r[i->a], r[i->b], r[XS3_SP] + 8 * i->number); break;
OPS(STDSP_L2RUS) STORE64(r[XS3_SP] + 8 * i->number, r[i->a], r[i->b]); break;

OPS(CRC8_L4R) word = r[i->b]; r[i->d] = crc(r[i->d], word & 255, r[i->c], 8); r[i->a] = word >> 8; break;
OPS(MACCU_L4R) {
    const uint64_t sum = ((uint64_t)r[i->a] << 32 | r[i->d]) + (uint64_t)r[i->b] * r[i->c];
    r[i->a] = (uint32_t)(sum >> 32);
    r[i->d] = (uint32_t)sum;
    break;
}
OPS(MACCS_L4R) {
    const int64_t product = (int64_t)(int32_t)r[i->b] * (int32_t)r[i->c];
    const uint64_t sum = ((uint64_t)r[i->a] << 32 | r[i->d]) + (uint64_t)product;
    r[i->a] = (uint32_t)(sum >> 32);
    r[i->d] = (uint32_t)sum;
    break;
}
OPS(STD_L4R) STORE64(r[i->b] + 8 * r[i->c], r[i->a], r[i->d]); break;
OPS(STD_L3RUS) STORE64(r[i->b] + 8 * i->number, r[i->a], r[i->d]); break;
OPS(LDD_L4R) LOAD64(r[i->a], r[i->d], r[i->b] + 8 * r[i->c]); break;
OPS(LDD_L3RUS) LOAD64(r[i->a], r[i->d], r[i->b] + 8 * i->number); break;

OPS(LADD_L5R) {
    const uint64_t sum = (uint64_t)r[i->b] + r[i->c] + (r[i->e] & 1);
    r[i->d] = (uint32_t)(sum >> 32);
    r[i->a] = (uint32_t)sum;
    break;
}
OPS(LDIVU_L5R) {
    const uint64_t dividend = (uint64_t)r[i->e] << 32 | r[i->b];
    const uint32_t divisor = r[i->c];
    if (r[i->e] >= divisor) {
        STOP(XS3_ARITHMETIC);
    }
    r[i->a] = (uint32_t)(dividend / divisor);
    r[i->d] = (uint32_t)(dividend % divisor);
    break;
}
OPS(LSUB_L5R) {
    const uint64_t difference = (uint64_t)r[i->b] - r[i->c] - (r[i->e] & 1);
    r[i->d] = (uint32_t)(difference >> 32) & 1;
    r[i->a] = (uint32_t)difference;
    break;
}
OPS(XOR4_L5R) r[i->a] = r[i->b] ^ r[i->c] ^ r[i->d] ^ r[i->e]; break;
OPS(LEXTRACT_L4RUSB) {
    const uint64_t both = (uint64_t)r[i->d] << 32 | r[i->b];
    const uint32_t shift = r[i->c];
    r[i->a] = zext((uint32_t)(shift > 31 ? r[i->d] : both >> shift), i->number);
    break;
}
OPS(LINSERT_L4RUSB) {
    const uint32_t shift = r[i->c];
    if (shift < 64) {
        const uint64_t mask = (uint64_t)mask_of(i->number) << shift;
        const uint64_t both = (uint64_t)r[i->a] << 32 | r[i->d];
        const uint64_t put = (both & ~mask) | ((uint64_t)r[i->b] << shift & mask);
        r[i->a] = (uint32_t)(put >> 32);
        r[i->d] = (uint32_t)put;
    }
    break;
}
OPS(LMUL_L6R) {
    const uint64_t product = (uint64_t)r[i->b] * r[i->c] + r[i->e] + r[i->f];
    r[i->a] = (uint32_t)(product >> 32);
    r[i->d] = (uint32_t)product;
    break;
}

OPS(PREFETCH_0R) break; /* a hint: nothing is loaded */
OPS(FMUL_L3R) r[i->a] = bits_of(float_of(r[i->b]) * float_of(r[i->c])); break;
OPS(FADD_L3R) r[i->a] = bits_of(float_of(r[i->b]) + float_of(r[i->c])); break;
OPS(FSEXP_L3R)
    word = r[i->c];
    r[i->a] = word >> 31;
    r[i->b] = (word >> 23 & 255) - 127;
    break;
OPS(FGT_L3R) r[i->a] = float_of(r[i->b]) > float_of(r[i->c]); break;
OPS(FLT_L3R) r[i->a] = float_of(r[i->b]) < float_of(r[i->c]); break;
OPS(FMACC_L4R)
    r[i->d] = bits_of((float)((double)float_of(r[i->a]) + (double)float_of(r[i->b]) * float_of(r[i->c])));
    break;
OPS(FMANT_L2R)
    word = r[i->b];
    r[i->a] = (word & 0x7fffff) | ((word >> 23 & 255) != 0 ? 0x800000 : 0);
    break;

OPS(VSETC) if (!unit_set_control(u, r[11])) STOP(XS3_ILLEGAL_INSTRUCTION); break;
OPS(VLDR) VECTOR(r[11], 0); nn_vpu_vldr(v, p); break;
OPS(VSTC) VECTOR(r[11], 1); nn_vpu_vstc(v, p); unit_watch(u, &v->c); break;
OPS(VDEPTH1) nn_vpu_vdepth1(v); break;
OPS(VDEPTH8) if (v->type == NN_VPU_S8) STOP(XS3_ILLEGAL_INSTRUCTION); nn_vpu_vdepth8(v); break;
OPS(VSIGN) nn_vpu_vsign(v); break;
OPS(VCLRDR) nn_vpu_vclrdr(v); break;
OPS(VPOS) nn_vpu_vpos(v); break;
OPS(VLDC) VECTOR(r[i->a], 0); nn_vpu_vldc(v, p); break;
OPS(VLDD) VECTOR(r[i->a], 0); nn_vpu_vldd(v, p); break;
OPS(VSTD) VECTOR(r[i->a], 1); nn_vpu_vstd(v, p); unit_watch(u, &v->d); break;
OPS(VSTR) VECTOR(r[i->a], 1); nn_vpu_vstr(v, p); unit_watch(u, &v->r); break;
OPS(VLMACCR) VECTOR(r[i->a], 0); unit_vlmaccr(u, p); break;
OPS(VLADD) VECTOR(r[i->a], 0); nn_vpu_vladd(v, p); break;
OPS(VLSUB) VECTOR(r[i->a], 0); nn_vpu_vlsub(v, p); break;
OPS(VLMUL) VECTOR(r[i->a], 0); nn_vpu_vlmul(v, p); break;
OPS(VLMACC)
    if (v->type == NN_VPU_S8) {
        AT(p, r[i->a], 16, 0);
    } else {
        VECTOR(r[i->a], 0);
    }
    nn_vpu_vlmacc(v, p);
    break;
OPS(VLSAT) VECTOR(r[i->a], 0); nn_vpu_vlsat(v, p); break;
OPS(VLMACCR1)
    if (v->type == NN_VPU_S32) {
        STOP(XS3_ILLEGAL_INSTRUCTION);
    }
    VECTOR(r[i->a], 0);
    unit_vlmaccr1(u, p);
    break;
OPS(VSTRPV) {
    const uint32_t mask = r[i->b];
    const uint32_t bytes = mask == 0 ? 0 : 32U - (uint32_t)__builtin_clz(mask);
    if (bytes > 0) { /* bytes that are not stored need no memory */
        const uint32_t where = r[i->a];
        p = find(m, where, bytes, 1);
        if (p == NULL || (where & 3) != 0) {
            m->address = where;
            STOP(XS3_LOAD_STORE);
        }
        for (uint32_t k = 0; k < bytes; k++) {
            if (mask >> k & 1) {
                p[k] = (uint8_t)v->r.b[k];
            }
        }
    }
    break;
}
OPS(VLASHR) VECTOR(r[i->a], 0); unit_vlashr(u, p, (int32_t)r[i->b]); break;

OPS(VLADSB) VECTOR(r[i->a], 0); unit_vladsb(u, p); break;
OPS(VGETC) r[11] = unit_control(u); break;
OPS(VADDDR) nn_vpu_vadddr(v); break;
OPS(VDEPTH16) if (v->type != NN_VPU_S32) STOP(XS3_ILLEGAL_INSTRUCTION); nn_vpu_vdepth16(v); break;
OPS(VCMR) unit_complex(u, 0, 0); break;
OPS(VCMI) unit_complex(u, 1, 0); break;
OPS(VCMCR) unit_complex(u, 0, 1); break;
OPS(VCMCI) unit_complex(u, 1, 1); break;
OPS(VFTFF) unit_butterfly(u, 0, 0); break;
OPS(VFTFB) unit_butterfly(u, 0, 1); break;
OPS(VFTTF) unit_butterfly(u, 1, 0); break;
OPS(VFTTB) unit_butterfly(u, 1, 1); break;
