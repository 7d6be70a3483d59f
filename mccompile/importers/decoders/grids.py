"""Tables of the types IQ1, IQ2 and IQ3 of GGML: groups of levels that a block names by number.

In: nothing.
Out: a table as [groups, levels of a group].

The tables are data of ggml (https://github.com/ggml-org/ggml), MIT License, Copyright (c) 2023-2026 The ggml authors.
"""

from __future__ import annotations

import base64
import zlib
from functools import cache

import numpy as np


@cache
def grid(name: str) -> np.ndarray:
    size, values, packed = _GRIDS[name]
    places = np.frombuffer(zlib.decompress(base64.b85decode("".join(packed.split()))), np.uint8)
    return np.array(values, np.int8)[places].reshape(-1, size)


_GRIDS: dict[str, tuple[int, tuple[int, ...], str]] = {  # levels of a group, what they may be, which they are
    "IQ1": (
        8,
        (-1, 0, 1),
        r"""
c-nPai&i8{2!s6pNAEh71j6W^>&4cdepEpS0ju6W(01n!K-<;)eV%}GB50c*XkC#X1Z_9sLO2%$?f=u`1~@l@Z}|D|bGPR6_IeP|{@nI+O#5^B=EvW8&;I
=QbIb?teinRz{#@~0@O_TQ0M9S*Ij~<CwEs;k0M0^y_UCSUVQ>}*v_G#0t~dBt;Pbs>#6sdMC}@8!!~25Qi3P`5c+mFQ0MLG(g5Q4r2ikrcg0nF#`_6oi|
9*~r3vHOb;O{#&611O>FHiiO_W6C;Bi|!;Y<SZ`$LR26&~_sn1hlgh&q2D=VL;n<9Pqqnp<|?D{VWr>uD>}NXuFT&eQx~x7w`J-7_^@Up&u+q{rJIhSRBW
dQ*lvz5{^TI_Ot6CK7gwUKK*id9LERk2NzZ#-~<F{-`WumR-k;`3=DJ-2QV%x<Z0Q~F(SY|+XF5?xcuO9zx#mKj{w98M16ghVFe~mfP%IesQn`2Jr17_T*
n=_TKdoBS0DrWc}HO51UMAvfv)XfloK8la_C=x=o=m3%`NYx7i#wgP`v6DtKg@rxN6%6^z5L0F!TUq|3*OdV5c8myt@godS3yw0=A}wj?s~c9t<!L-{-;4
@kyAW8u4T=TweA8*BQ)o;Ke}n1fL6h9&o)uwAla)+UI`r<^o>OJ~x@%N{n!9)dtrE%mNn%c`+!sO<dgOVmu644>LO;fNxsp7(6EMzh&GBpup!uWcYrzX+I
CvjOGW1*gLO8(z19~xmu5?SeA!qP4oqQ5B{DW1bI>;5)_agR<i`%T(|9cI0>w2p<^aAAU#zHu4$oTWa1NK*K9!~L?|)Z^E(n{(?ZAKF*1>Y_T|HgAVCLnb
HT@q4Sp5)J?-<5=YN~QK}>F3i3ys&r*-5qkwXa`{JE?W{Cly7$1CACEo4am09q1(?j!&|1`D(Fj{TC35k=sKUZ8*>5OSJ|o0B+UJ}jaE+6Jvc?GsUqBQP!
&Awi9gH;8H*@ftjDAiq}#i^vEWMQEB9ItGuCgs0zzJU#|KEuWju2VO4-5k2woulL>%XTb8Q&jmq$S}99Q)kq=*+HMjn@c7;7-JTyNbb%QFyzjGkwxS9fVk
QnDY^kUo!2CSKO{9RVd_Y)1P@7c_!NVbXVq=dj4e=A3d3kz>pxA~Xx+X_VR#X-fr5oZ%ls4*BpvGiMMLDCE(FsNa3Ejhn<rSD+JA_nkMMN=nYmIRTD`=g9
n7KhB`{*P{A77^4OA6YTm%;jM2rmxt1+7w@h%m8)`IvsN2y#zI4~gh`awY?UEy2n`h1rxttY1C_^C<mbpQ4<ny#|7aD@Dt-#Arm!TlN8hSN5eBFr9!)unG
LLP5T@Jgy~^QBKn|xa6FWO%$puZOyl}uGc7Gevp_KOqJ;{EM?DzouHYXmOd)|&P^eZAcc@)7twKZO-_)iSX#wMW6(TqV2~J^xQ=ovBOJ_!@!iAXXy;kawY
skajwhjYTp#$2t9gO3pSbzo4tG~E^U_7tF2&X{OE7XeFT`1|x)Q^l9ETG<FF^*S3g;Q8*iQdPi(84LWKx^%yw(4Yg%rcfDzEh^^KV&H;y(!pS#a75aT~X~
#iG?Hc9C_zdIjUw<#eB;<9c<mQjVp>uSw?b<<d>H0(kZJ*K5<1-zso2_MzM`zR?lp2nd8bB=8}{rEI$Zog<3~8kUa39XBD(8%iCgVXL)Q9Aj{WVw)%`yj=
JI!;-B)fMLt9dkY%U0T%a#-t_>=yY&_+nOCv!;XSvs>yfZfxS5a<IO!g_vPnqRZQ&~QFWlnkI0^Vg&MLE-_d~ulq7y40_sQmCNopQqELuZ+wGJr&O$^c89
w+u*{?^@sw`YzgTB~}tyAG%&i&s+5T&~VXiGlNcAJ(ami0?6Zn9$)&~q`gxz%N0adMN`QYP(dFJJ)QJWG|(P?>7PsUq;Fre&B;q(eCQSk23EL}R=HL?G-~
M6p-W1k3WY<DE-exrvJgZ%B>K~$J)$?4#vJ<6)HzLGq?nMdH0jE#T2?Jxzte!5?w#J5iIl#LC`_L>J)SPpSDLiQuiC7$i=ys_Mb6H&WvHo4M}5+di&mu#o
b(_PYe6hjV5zv11_b}LwdwCPU=Zz48%JR4BecnBjtXel?u6$)aBLr}gk8I8CA?lZ?E{}y$SUEn4;%{aMgpsVr#^5b7#jE?%;3O^tKAB?_zMo4;}y=LvV8=
`6Naun7+wl1v+(*oJo<#g%7EeCPIZ-TYWJ*QJ8r_bwyNLV&l$GUos2!lZR`V;ZqR4D`)seb6}i2Aw$oYT3aKh3I=7?G^513eujMA%XjzfV+kKX?bGiB~k3
*vKwfnq|lU3zo`*AxTtIzGdOXu=->OMko=a2nq{lgKG^#dR~r8=QHPs9<P^+B8qRG$lhQXf*N?ju<1MmPfYy>WFu0M3I*=%$j$N}Y6r`@DtlMm~6TzCbOl
atr0XG$1j@{le6#EvWys0ODS?ay{rCTX^q<JsWzpa5%!e77}MctIxtxxR=t>BgKZ0PsxaU?|UP_jX)tb1hfVIoK_8i-aYQMVQLigX%uMVUadVFSG(D@HnK
W56sOV9r{MsJ^PL-y$_=lfV6pLaHy+thk%A>hkTlY#fzi9D*pAZa7}e<@IF3>qtQTdhP6xtijOYu;v8vO-a2>7OdXi&><5i~v>JrrN-_deR&zc+ug?b;yL
Gg#9sxi~D)#1Q;g<9{tl|vy7g}g_L*T@Ly_@dwn0G|3(E-+3aAZkr7!9ylDAlx{rj=<28S4^Euz*J0&V44?CIkR|5ec$3!tyz=l+LLAe5_ncn`;S1x?*WM
$nA;h&XsZ$i0~9wvYj<JXZE@+Y?t!`m6{<R1^Y(ICY)rU;U0cmufgbAE1iE{Q=;&N(*hD~3OIzB&P^*^OKvA85fdd>6meChb2tX-ko?R7>q^8obq8fFz>8
;2r5v~#~u0|C#vo06FaDc2j0SpJoDp=TX%ntJK4RF;7bU1(qIps*wzXBi*5JI*Pz(~|^LsK0Dw=UX~UG#o>Wq8?WzkM2^lFYS=)d{ruR`65R0p6$cfQ@{R
7fg#EuoA>GI~uN9f+|D<7P8PWfgSB0k2GHoZ!EwU_PXhf!%$8`S5GPt-6D3)OvFwMwR$)fFIEHCqkVq!Yz(XTsZFXesZ6d=C&4%=5WLk;#vh5NhG}IYsx^
~9u@Fl`mlCH0Rn?KGYF%n8c4lzU4wg!8@N?kjuy?p}4B3rtoQ5|}<6FHKF~l?8>&Cc-O>V-h9K&_vTrHzM4RoAFx|%v>ptVHn8GEHDs;R6=%o1nRVyqljb
>c?H7^)L_<#_3LLPs|A6+t(_SB`hO1+JEvm~`cMrhA6!eMzg4GCPC;F(`mDFrb!PpTPl~0Ro&s0uzpkaX)nrOg!ZBXAI9VBnilbq(ZH8lS2f>qIFMCa*c<
<s!PYXmo==)F)bsPpdE+k2vaM_;7s;Zjz4Ma$*n3S+dhL40t+pU5Yyv8Vl@?GJ|<Miv7RAVIgaB?I%_Bk=$YBFAZiJ9JRz*8uN-4>iCsCC;vTlVhrPxjc-
1k`@kRLF-Hi!210QM`tHP@s-|!h~_V#Wnu9i&Q@d{OlHN7`}Zp6bi8I2mv#KrU?qGe7}*d>oC1IG<2#|r#L3PKUt%CP_+sMl?xo9%s<Se5N}uav$-j4Rvc
UP-mfJ<?av_BK^F^-%>~(U$%q+?DNP6K`Aso^4(ajr>K-E2o=H)HR6HXAnoJSD{wB$+8H&niwMXmF-W9i5*j&Lj|=};;5BvLzD8(_MRvEDyP?A5}>41F|{
?+lTKOtBCBwyY<IbUP-KX4-2$SrjRXq0{!@v{Hjrn`RcI*U+?}szi@4WN+14<_t88016?Sx8r%<VEGx!}U+Xjw!59=TYrli<Z%J=RXsUWJ9;mtrz{R>$rr
5x_UsZz!^gOyxeDL-3WuauR|cq>&~Q%t3jN}1OT*<81_DmMdRowBIcv{QX@F>_>1Lsq9u2_Pp=P3kIC2^<*^_@gka)mz<@tf;6${V=zH)BqbF+=FbwddLc
^QoeErSgf6TtN(UMtkSGetgbeDn%<_^kk|}5WEpD!!xC!CDVETjrC8Zi$|3%nn@X9(g>EG(aY$ea;7SznOqApXMRP^eO`%*V7r640S82EVl=(P?v^i&%<@
QY#!!D;g%Hc&05gmDfvp`eerXZ@XLOcubS~0OJ$I7zI%t7Ut%B{*W%FIG#lgp!ua>o*>-mtO^F*6ZIP|Q}A5oRtb8<tQoLr-fkQWdd=S0I}-e@0n)|Mi3E
xGAktlLUxLx@>XBbodNl!h@J3{f~~CGF8&cC1?Z<9M2#mRMI+MOk7LYS4qo!ifEYsm{2sR_B7fa01f(KhN$T#(~cazM<u<m@N&{LPMWshqO>blRu^4q@(M
7OX~{~*6=akKR6CbD09!<!2$QHO7#F6wSg(LbOC&Br2#b|)29ul$_`!i6f;D*K`ICY=!jN)+F@~iW_rzb7;ciBcGhmA|Xsd8k^;{V?MxaXfcZDE#S1zt}T
Yt$-#pX3KVfQNhDr|{8Y5SG!wXNtBys9>uj~InB2#hljj58Rl$Cf}=d3&!e&fu^<uG1@j?6dUmAG_l}@&
""",
    ),
    "IQ2_S": (
        8,
        (8, 25, 43),
        r"""
c-n=T0e0jt2tzIIf9N(gA0uYc?!G*>+eu=Bkc4Ng^CvP&{vVN1OZI`tsPG#iqvQ|J$_M0wBIEDJ?7@*y@)v1^y)ZH=d;yX1_bywImcB0R_s4Tz<j;Ar;K=
yg)i)3spJnz9X~ox#MaJjjeWO~k4M#?WCqT+XME<-oAtN!7QOdaDYofTGhxNp1>1zU?^hBnmCp0oX+wBQ{w$T&)JnlTl6Cdj&UOoA2j+eE9M8=(+R-nDwR
;b9h-_i;f8F$%QAtR%ftgw-Br@s|CGVV0Dr2&A*sBl2+w48P4RwC~U0}Qp{0zi>bO9rUOxR=uawqK`{c(v34yvVpe)_@opB?qQfd<AG^loGI!KQDa+Fr}l
`TnY!a<N%i(=vs2XCo}9+{m}qmp4@T)lGQgA`SR8%8{KjGBB7_=K#_4*xiwT|+}VuGUgT~gci9?m|2DF%B6+GoeKurd+^}s8y5ZOwbi*YQCXsNk#trpW+6
!w9ttD&hSYZtwqtTzcdn+y@FV!BFv8W2HfJMea%EeuRpcIl5h7A3n7<67DiPcdBiY|35tJWnP$%#jqrAa_QL~=qRr~HMWBIBW%OIVTd(8(n*?j!|~@zB5}
w#aze`w|^*oP-CYPdi=$WMvQ`D<t(`lA0da-yKYXJg~hxgD~0Q8)4F7a3VcSMph>$NTd-fO##7@!PPfii@U@d8BZE75tI2z$WQ>co;2JFO~R&Pt8pQ{-HD
vsazX4=dJ;So#L^*r5HX1#guDp=TZc12(i8-c^(G7tzjfr%nxSSknsBgJE|9u<lg2H{PE<qk6__w&7Zo&0Rx2r*KnF}=q9dk2Jt}mb7k>)XliV&?NCHqoi
|Dx3MYmkw6*kB|(sj|HQ}6&KpqRpU)aMFdqyW<4QwZtx!s2p4MB=I?mc9xkmg-F?OM~+7S!kqhjg*)!r1^>3()lDz1ht2nxov_=PhnaR`?~HMFZnishD@e
VpX7JJc4rMmPy(283OdX=g*|rLUV+DoUZIx>zBXL1@E0|$W=0z`Ph)VCe13qrOB#1N;&ey%4qz4Ia38Uwd@N-QW#}k_K}F?bB)wJ2vE1a85djJE@ec7R#a
T{@kXjiRkW^&g<5n3OibXL<W+ltVqLKz$Pd>(=;&V(vbyZmLv7)F>J~kBc<>Npp>oin!2y6?x%I$j@Ex8S^t<ho9Fkmt}T+&Dv$?a_!G`Wo}g9aMpcC(-=
x09u1a+_G4FSmo0<K?!lT6wu$!=9B9l-sT{gfPpnSJO_FQIy-Gk}$dbDW;O!n&RwfEUAIqe$*qT;oNH9oYR{Dg(2lKUrU<CR4&i01vb#Ox^`zqCgt*2jEq
OZL*V45!3BFm?xwum6M`2b4D-w7rBYtS$wkWL;NzqrX?)W6tD#15<TP2OUQTn9)=F#TG*(=)oR%gH)t2P+Ql@PhcoY%yfVGg*K#}$Gwk?ua-i`%YKqhaiN
(L{Hw?|!bK#;@tV^EO8tXgRf4suvj?jC{bgM_?%Wl7~_Dd@=4U7l<X9<ZD|J+<dKkjS_5F_?fF`D=?h=D;HV^~d1CKjr`vTaiBp8JrO}VnKPp9CUc#9C*$
!b4@uf`fmW*uJ*h?`ar}2mz{p!0f|;;;mkB_U=B`f2rgn{?*o;e%wbYU0HRDH=D<Z_-Ucu2EqxupnrqF3w84zTG7^yBIjE8Fw}Fj9ybW$xREh+pRy9t?RU
u1h(%NwEPF)-HwwI0LNqWJTfBnMOEj0)N1So^0Fsl`kmwjDPgCg7jV8ALh;hF$KApsIfiMd*SoL)eqv;eNe%a64Sh>#qBr0KZ|Tv_BJ=XX%0L-TmHfDEMq
=u+_15CFdVNZtUyx@5Kn0J1c~@?*Vf3^bnxDK5+<vbQ@Z`w22?N<*P`G*(GOZk0xR8>}OnisH{fTc_JT2JS-5vSWj4+}drfl1Y$;F2|E*VUu7R7Y~OX4)i
1CFap3aF}^Jy&x#=426-k?h=Y|uAal?Mb8iFxBpRd{!kL4A+TS9gw*vr}V)ZXAul=e_LSXZt0782^FgS++m+<~OK!6A#n>d@_wAhJp9x%j7WzD!c)vVz=S
5YSdNsDy=0m1UEEp%4jQs$Qs5br#wC@39fD06yJ8TUI$jvQ7$C5k*H;^uj}asLUyza4lSq{Y3mtR*FxhNv%J>x}BWUT1{K9<3v+`k1e_EiFHme|`WYhZh$
""",
    ),
    "IQ2_XS": (
        8,
        (8, 25, 43),
        r"""
c-nPWftKVj2nziFN6%EjXxi+)p0}MgQ3TAal|NJj<_#)hVLU)ZaK1oAU@m~A1+)+q|BsD@sR+!Cu=u$l75`6-1h6m?`M)+2f-WaU#pkJ>C>5V{dg4^X;%6
aLd|vB?Vd1+#QlG2POToULhdTgR_yht=KpcQP+jl_z|Bwxn)syie4KON36%D}H{R2oU28<0@EDV5o0PU@AKpP8R1|AEa4RFe5Bak~+LtN6?kcURSF?53vl
&D6zH_piy6%ESS$mj|;l&{9}WICDaW;FD-#;b%CWei1d5aGWKbw478icy$=lQ3=;FbRag#!V!b3QS^QbZZlgBs!&Tgfn!&B%ps!BKppYkVQm9q@v$+%DfV
lgRpL;xoHkKgOkY4$i>8Bo!F7iCb%=d61@l>wZwXCm7c`sDFDQa`B4*sQy~f=ghxK~X~Hmdo$~73E4O_M$4Fm=ldP={Tm{68z!Z{yPeHkpr?5bN3M>(dHz
OheDJC#6dM*wDb`$0{i)dPY&dkgL4TWm5QIAtt?h5ixy~WMMHHV9bK?&TIV~*cq@F{#FggF+WEsOD|F+lE#ImTW_;hUIarj&CU2<8}g841MZ?8sK!X)IL4
wAV5kqk(C2rCeu$X<L=s-H@izUj~IC_eX18#z_gS-3<&=X0HhgsCP)2uuNdpmgpHK-9zlUzZ%U-8JP5`)L%wO4hOp#BPPrRcCNe)lIICP$T8JW&UhLp<~G
UKEMtqZ8!M|y>Tja`XJvzs6Ra6AeCWyHVq->{ggjLBQ1yH)bTx40PM==V1U228v4>}cmFQ>?j4zj<4Zg^n+Kmd3j05&rHcUSfq{z8)b^~%gJu|;%_-jQC3
Kw<`3?EKh@NIC|S#6Gbu>i6Hco{GoKpX>yWAL!{>aM#1J_nOFuFh}w&@m&2&mLS-WC|^3Zy-$fv<BHq$~lXCdesE+sM9d933|LNf09v5p^z&=+y<ixV%eu
`GRvvcMlmDz-UHN3FNd*=Q!7c(ydO(YG1)1LV=yi#mSRUqaOp$Sj%$znMyqNqIa{nY)QYiMJ3*Ult4P4}WWB#?p$R0C%$!3R?nFP_vn`>CURR=@N6|cT5p
D46u{x3Y=LbUu3kL
""",
    ),
    "IQ2_XXS": (
        8,
        (8, 25, 43),
        r"""
c-n<ki<0di3=;nTqjwDuW3O}f%<0(Lm<Nz_E&b>fxHsq(3r_=n4Cxii2fhcX6~8yy=H-xCnP)kKudid^6CjRxJ3be4Uyd=Ij{w*fwZ|(U6PT%t@DbVv?Z?
mLOpr;GNtoJ4m9ot-k-`QDN`o)tejn*Lv*5(&E5S(@p%SYKIy*X>36x`(0gsC^8_;}#jPvu7Phf$+02af7WdcrFAV9wXmU|mL0Oy8z0G=z6I`xH%fQmGT5
JzQP%B#qOknWbK9FYt$rBAPt%_L-M_eiXvJVaHog6j~66{xATlr{-<N9>m(b}Oop{fB5{5%F~Fb#(!(=784>9f9B@6z3ZGn+3q@y5w7NMpY%0OHh0Z3zQ<
Fp}HFai&FZ;r^6-6(dkM+dDHD`JHdFt**(`9zu`FoW`wM6iK>gf<6bzzq4!#b0$*AH=425hj$4AKAuntsz5g`=c{PM$QGaO~vq6ANtO33ng?jEuHa|Q0oO
A+FY%`KxT;0`cj>=}tlF^Wz8ss$rdn_0Q&s{ou`ooeoW=4@_)T1%oYtg!=rlGBUddA1N7%=TppnyWya#s6Pe|25{Va|Z|)S)EkDqE31<%0zW
""",
    ),
    "IQ3_S": (
        4,
        (1, 3, 5, 7, 9, 11, 13, 15),
        r"""
c-lpk366y@3`3j!{x_cIgwYqW3Z-PT6W)8zfP(__Zo`0s1pOT_P#}WmWD67+V0;`h(Ch=lP=fgk>T-~uaRc=^2{6EdJ&-sxoEGpo=lZ(9e1QaLV9vfPD1Q
k&c?JWFU_${9tH5Oz_$2|4=fFrNK!Z&7i+wQ7yW#9yvSIlK7)dAaAn9Zu*jEHan5v=^DQFNB#j=R0IKp1DH>_M{ja}AgK4G0+29#xr3FjU(h~T-{uPdk>9
hP5l?aF5b<|{U3QMyK2rgU&`xR+bQ<Pu?bL|bbmfjRfVe%ywLa*;Khn<GtEfdK?*30y>`TYxI=o4q+>svucxl)5-<14xYccup8?o`<)nj!I%V_rf5t@Qg5
8;wX0O0#n9e7a(L~miyw~o0u9Otl50mn*hvig%ml#Sp{qIOk#+2#b&Dxu_y*ke9AJ{s*>kDKvEKwWJIVd39plZ=y&K`!9tzaCtT6;HhX#J8Ed6tlD<md`4
tuux$Nr%E&v+$i7Pg`_5md5IoAL>Q0gX&{USw3grjc`5pjigA4w=_n?<Jx9LYmka!=#bNZ~|91Ca<mX`(EAvW^<6@ztwL3g=a<EwzhmD(=^CL11WhgR^B?
4DrS;Si9B>+Kn)_m0~0mwN3v7qb^0ZAtl&mv=X6dNfb(ZuA!wsv7w7}Y2FjqTlL_6D-nupJxh2T#3x-^+>gS^6(g$IqM0le9n={KG@;NOzKW`_5`AVx%fP
VGX_hBsv_?F$tf8|VB$^r`05wqUrwTy=+2oE6wY?@6qjOtvgAwCup;E+Zh~gedlA$S#bdXF+JrOscpb7bNKfY5+O{8R`QW36_5b+K%g~BH}Vt`wl+=(@6G
?MqG0P4KxWPst1NoKQb!7=e@+7kVC=8oeXgjnMZ&lu}IgKAh6ur!@*l`fV_t*Dk$BZsey3#o3AHO1$x1W;387a8$}11c*vnFfGTU@MDAOA|=SWYI~g(JS7
Rfax6cD3Y3w+iv{#UW`b(xlyu4#tIw-w5o}f)<sP@M=_8dnrbA|azOcbo4g}3K$uvp*3^I53?Tk0-;mGyHSVydUi#ha(ARHbJ!nYr0b+p`BXEs%*I#Bdy<
6i$<3Sxz{|zSv#)^%a@Rxy7Ny(Q={7^oAAoT8bjY9YXZKxFI
""",
    ),
    "IQ3_XXS": (
        4,
        (4, 12, 20, 28, 36, 44, 52, 62),
        r"""
c-lpi3l0P!2t)aE{~PZsPO@VfU00!$YGxLofV)|O^|u+olbJtr%^El(fer`oaO-#%19-Vr|AS~0aDM><c!nid;LQwr<03Cm(f}Q-Hwj%#WmU{wa4F6g=bQ
6QUeIlwV>QG5wE_dO)_nFD=c6ymq9Ynt3~9W;7xIb|V|^+z;w{8Vw>7kB$!cHm@d@CWJ_Uv~EE-sYXfH5`<J;^HArPsaP*TUAgeRJ$ns`ak{}PKT^iE7M&
`|0m)B-d=k#*fK`V(9qTGNO?rbk@Wm%k<y=qzLesJ=l*tJzm)m%R<NjILL#UFEN6wGz#;hrO?P@ikDRNHRdBv3Y7kfrMb6VESkjZ7ufb#C5V^+}RB?pVUZ
1&BPERH=J_S$qcXnbg{@{mbj8I44A+Y{3bycbU5OTlcuOpJAJ0YNhJq_T#%ZLhJ6OZr6YtxhuePapHP&pfrB7i*qE?ea&&vjl!K~!VpbSgZ3fiH06rS@iQ
j>OSK)}AF4C-5wC#0RuK_a4GnAoUV_*ocGrZiWWMZZl3xSnjHc1L8Q}>GX+VCQh%>Dp+019g
""",
    ),
}
